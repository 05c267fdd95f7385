"""Names and texts use Kafka's words and those of testing; some private words stay out."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXCLUDED = (
    "tests/recorded/",
    "CHANGELOG.md",
    "requirements",
    "LICENSE",
    "tests/docs/test_words.py",
)
INSTEAD = {
    # `foretold` is a key of verdict.json; a kept sentence of the witness has "ever told of".
    r"\b(?<!ever )told\b|\buntold\b": "response, parsed line, observed",
    r"""(?<!["`])(?<!verdict\.)\bforetold\b|\bforetell""": "expected verdict",
    r"\bretold\b|storyteller": "log synthesis, synthesized",
    # `stories` is the key of older experiment files, which is still read.
    r"""\bstory\b|\bstories\b(?!["`:])(?<!workload\.stories)""": (
        "wire script; in tests of the replay: scenario"
    ),
    r"\bpatien(ce|tly)\b": "interruptible wait",
    r"\btether\b": "dies with parent",
    r"\bseats?\b": "member handle",
    r"\bfleet\b": "client pool",
    r"\bstrangers?\b": "stale timers, unknown members",
    r"\bparked\b": "pending",
    r"(?<!the-)\bworlds?\b": "hypothesis",
    r"\blikeness\b": "subsumption",
    r"\bwhoever\b|\bwhosever\b": "the member that, the client that",
    r"\bout and in\b": "leaves and rejoins",
    r"\bin office\b|\bterms? of office\b|\breigns?\b": "coordinator epoch",
}
"""Pattern to what to write instead. The project's own terms are in docs/glossary.md."""


def texts() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.yaml", "*.j2", "*.js", "Makefile", ".ci/run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    paths = [ROOT / name for name in listed if not name.startswith(EXCLUDED)]
    return [path for path in paths if path.exists()]


def test_no_private_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}: write {instead}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for pattern, instead in INSTEAD.items()
        if re.search(pattern, line, re.IGNORECASE)
    ]
    assert not found, "\n".join(found[:20])
