"""The documentation's pages about findings, as a report brings them along."""

from collections.abc import Mapping
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from reports.judgement.explained.pages import Page, pages


def pages_of(verdict: Mapping[str, Any]) -> dict[str, Page]:
    """Return the pages of a verdict's roots and unmet expectations, by their addresses."""
    roots = [one for one in verdict["findings"] if one["root"]]
    named = [one["page"] for one in (*roots, *verdict["expectations_unmet"])]
    return {address: pages()[address] for address in named}


def html_of(text: str) -> Markup:
    """Render Markdown of the documentation; where its links lead is not part of a report."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 (our own text, without HTML of its own)


_MARKDOWN = MarkdownIt("commonmark", {"html": False})
for _tag in ("link_open", "link_close"):
    _MARKDOWN.add_render_rule(_tag, lambda *_: "")
