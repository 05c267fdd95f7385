"""The track record: a report on each defect has the section that the documentation has."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from reports.judgement.explained.pages import page_of_defect
from reports.page.explained import html_of, pages_of
from scenarios.loading import named
from scenarios.overriding import override

ROOT = Path(__file__).parents[2]
DEFECT = re.compile(
    r"^\| \[.+\]\((docs/findings\.md#\S+)\) \|.+\| `(\S+) --kafka (\S+)` \|", re.MULTILINE
)
RECORD = DEFECT.findall((ROOT / "README.md").read_text("utf-8"))


def words(markup: str) -> list[str]:
    return html.unescape(re.sub("<[^>]+>", "", markup)).split()


def section(address: str) -> str:
    """Return a section of a page of the documentation, without its heading, as HTML."""
    file, _, name = address.partition("#")
    text = (ROOT / file).read_text("utf-8").split(f"\n## {name}\n")[1].split("\n## ")[0]
    return str(MarkdownIt("commonmark").render(text))


def test_the_record_is_read() -> None:
    assert len(RECORD) == len(re.findall(r"\(docs/findings\.md#", (ROOT / "README.md").read_text()))
    assert len({name for _, name, _ in RECORD}) == 12


@pytest.mark.parametrize(("address", "name", "version"), RECORD, ids=[row[1] for row in RECORD])
def test_a_report_on_a_defect_has_the_section_of_the_documentation(
    address: str, name: str, version: str
) -> None:
    expected = override(named(name), [f"cluster.version={version}"]).expected_verdict
    assert expected is not None
    assert expected.verdict == "fail"
    group, because = expected.group or "any", expected.because
    is_promise = because not in ("unowned", "unanswered")
    judged: dict[str, Any] = {
        "experiment": name,
        "broken_promises": {group: [because]} if is_promise else {},
        "expected_verdict": {"verdict": "fail", "group": expected.group, "met": not is_promise},
    }
    page = page_of_defect(judged, group)
    assert page == address
    shown = pages_of({"findings": [{"root": True, "page": page}], "expectations_unmet": []})
    assert words(html_of(shown[address].text)) == words(section(address))
