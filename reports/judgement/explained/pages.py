"""Pages about findings: one for each known defect, one for each kind of finding.

The texts are Markdown files beside this module. `docs/generate.py` makes the pages of the
documentation of them, and a report brings the sections that it needs along.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from reports.judgement.rows import Row

DEFECTS, KINDS = "findings.md", "kinds.md"
UNMET = "expectation_not_met"
"""The section of `KINDS` about what an experiment expects."""
_SECTION = re.compile(r"^## (\S+)\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
_ITEM = r"^- \*{}\*: (.+?)(?=\n- \*|\n\n|\Z)"
_RULE = re.compile(_ITEM.format("Rule"), re.MULTILINE | re.DOTALL)
_ADVICE = re.compile(_ITEM.format("(?:What to do|Upstream)"), re.MULTILINE | re.DOTALL)


class Page(NamedTuple):
    """A section of the documentation: the `rule` that a finding breaks, and the `advice`.

    Of a kind of findings that is what to do, of a defect what is known of it upstream.
    """

    address: str
    title: str
    rule: str
    advice: str
    text: str

    @property
    def anchor(self) -> str:
        """Its id within a report."""
        return "about-" + self.address.partition("#")[2]

    @property
    def is_defect(self) -> bool:
        """Whether it is about a known defect, and not about a kind of findings."""
        return self.address.startswith(f"docs/{DEFECTS}")


def text_of(file: str) -> str:
    """Return the Markdown of one of the files."""
    return (files(__package__) / file).read_text("utf-8")


@cache
def pages() -> Mapping[str, Page]:
    """Return all pages by their addresses, such as `docs/findings.md#absent-member`."""
    found = (
        _page(f"docs/{file}#{name}", text.strip())
        for file in (DEFECTS, KINDS)
        for name, text in _SECTION.findall(text_of(file))
    )
    return {page.address: page for page in found}


def _page(address: str, text: str) -> Page:
    words = lambda match: " ".join(match[1].split()) if match else ""
    title, rule, advice = (words(item.search(text)) for item in (_TITLE, _RULE, _ADVICE))
    return Page(address, title.rstrip("."), rule, advice, text)


def page_of_kind(kind: str) -> str:
    """Return the address of the page about a kind of findings."""
    return f"docs/{KINDS}#{kind}"


def page_of_defect(judged: Row, group: str) -> str | None:
    """Return the address of the page of the known defect that a group shows; None for no such.

    It is the page that names the broken promise, or whose experiment failed as it expects.
    """
    if promises := judged["broken_promises"].get(group):
        return _naming(f"`{name}`" for name in promises)
    expected = judged["expected_verdict"]
    failed = expected and expected["met"] and expected["verdict"] == "fail"
    if failed and expected["group"] in (group, None):
        return _naming([f"`groupquake run {judged['experiment']} "])
    return None


def departures(judged: Row) -> Mapping[str, tuple[str, Page | None]]:
    """Say by group how its coordinator departs from KIP-345, and give the page about it.

    Where no page is about it, the broken promises say so by their names.
    """
    return {
        group: (page.title, page) if page else (", ".join(promises), None)
        for group, promises in judged["broken_promises"].items()
        for page in [pages().get(page_of_defect(judged, group) or "")]
    }


def _naming(names: Iterable[str]) -> str | None:
    """Return the first page of a defect that has all of some names in its text."""
    wanted = [*names]
    known = (page for page in pages().values() if page.is_defect)
    of = lambda page: " ".join(page.text.split())
    return next((one.address for one in known if all(name in of(one) for name in wanted)), None)
