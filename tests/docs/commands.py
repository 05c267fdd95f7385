"""Every command that README and docs show, with what stands for its placeholders."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTS = ("groupquake ", "make ", "locust ", "python -m ")
INLINE = re.compile(r"`((?:groupquake|make|locust|python -m) [^`]+)`")
PLACEHOLDERS = {
    "NAME": "demo",
    "RUN": "runs/latest",
    "FILE": "scenarios/library/demo.yaml",
    "VERSION": "4.3.0",
    "G": "group",
    "HOST:PORT": "127.0.0.1:9092",
    "T": "topic",
    "DIR": "nights",
    "KAFKA_HOME": "runs",
    "N": "7",
    "mine.yaml": "scenarios/library/demo.yaml",
}


@dataclass(frozen=True)
class Shown:
    """A command, and the page that shows it."""

    page: str
    words: tuple[str, ...]

    @property
    def path(self) -> str:
        """The command and its subcommands, such as `groupquake dev fuzz`."""
        names = [word for word in self.words[:3] if re.fullmatch(r"[a-z-]+", word)]
        return " ".join(names)


def shown() -> list[Shown]:
    """List the commands of all pages, each once, without their comments."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [
        Shown(str(page.relative_to(ROOT)), words)
        for page in pages
        for words in commands_of(page.read_text("utf-8"))
    ]
    return list({one.words: one for one in found}.values())


def commands_of(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the commands in a page's code blocks and inline code."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced and line.startswith(STARTS):
            yield from _alternatives(re.split(r" {2,}|\s#", line)[0])
        elif not fenced:
            for command in INLINE.findall(line):
                yield from _alternatives(command)


def _alternatives(command: str) -> Iterator[tuple[str, ...]]:
    """Split `dev fuzz | image build` into three commands, and name the placeholders."""
    first, *others = command.split(" | ")
    words = shlex.split(first.replace("…", ""))
    last = re.search(r" ([a-z]+(?: build)?)$", first)
    yield tuple(PLACEHOLDERS.get(word, word) for word in words)
    for other in others:
        assert last, f"`{command}`: what do the alternatives stand for?"
        yield tuple(PLACEHOLDERS.get(w, w) for w in (*words[:-1], *other.split()))
