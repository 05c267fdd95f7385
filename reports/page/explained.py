"""The documentation's pages about findings, as a report brings them along."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markupsafe import Markup

from reports.judgement.explained.pages import Page, pages


class Shown(NamedTuple):
    """A page in a report, with its text."""

    page: Page
    text: Markup


def pages_of(verdict: Mapping[str, Any]) -> dict[str, Shown]:
    """Return the pages of a verdict's roots and unmet expectations, by their addresses."""
    roots = [one for one in verdict["findings"] if one["root"]]
    named = [one["page"] for one in (*roots, *verdict["expectations_unmet"])]
    found = (pages()[address] for address in dict.fromkeys(named))
    return {one.address: Shown(one, html_of(one.text)) for one in found}


def html_of(text: str) -> Markup:
    """Render Markdown of the documentation; where its links lead is not part of a report."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 (our own text, without HTML of its own)


class _Renderer(RendererHTML):
    """Writes a link as its text alone."""

    def link_open(self, *_: Any) -> str:
        return ""

    def link_close(self, *_: Any) -> str:
        return ""


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
