"""The pages that are made from the code are as the code is; README and glossary keep their form."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def generated(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_generated_page_is_stale() -> None:
    done = generated("--check")
    assert done.returncode == 0, done.stderr


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size < 9_000


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_glossary_is_sorted_one_line_each() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
    )
    words = [row.strip() for row in rows if row.strip() not in ("word", "---")]
    assert 10 < len(words) <= 20
    assert words == sorted(words)
