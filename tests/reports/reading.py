"""Reads a page as a browser would: its text, its elements, its figure."""

import json
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

from reports.page import report
from tests.reports.page_run import MadeUpRun

SILENT = ("script", "style", "title")


@dataclass
class Page(HTMLParser):
    """Elements as (tag, attributes); `parents` are the ids around each id."""

    source: str
    words: list[str] = field(default_factory=list)
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {*self.inside} & {*SILENT}:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All that is read, in one line."""
        return " ".join(" ".join(self.words).split())

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] or "" for _, attributes in self.elements if "id" in attributes]

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """All figures, by the id of their place."""
        start = self.source.index("const FIGURES = ") + len("const FIGURES = ")
        figures: dict[str, dict[str, Any]]
        figures = json.JSONDecoder().raw_decode(self.source[start:])[0]
        return figures

    @property
    def figure(self) -> dict[str, Any]:
        """The timeline."""
        return self.figures["timeline"]


def read(made: MadeUpRun, *, results: dict[str, Any] | None = None, **verdict: Any) -> Page:
    """Return the page of a made-up run, with other values in its results or its verdict."""
    run, judged, data, *rest = made.finish()
    return Page(report.render(run, judged | verdict, replace(data, **results or {}), *rest))
