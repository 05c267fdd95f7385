"""The pages that are made from the code are as the code is; README and glossary keep their form."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_generated_page_is_stale() -> None:
    command = [sys.executable, ROOT / "docs" / "generate.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_key_of_an_experiment_file_has_a_meaning() -> None:
    page = (ROOT / "docs" / "experiments" / "reference.md").read_text("utf-8")
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| `")]
    assert len(rows) > 60
    assert [row[0] for row in rows if len(row) != 4 or len(row[3]) < 5] == []


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    assert (ROOT / "README.md").stat().st_size < 9_000
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


def test_each_bound_of_the_verdict_has_a_source_and_tests_that_exist() -> None:
    page = (ROOT / "docs" / "trust.md").read_text("utf-8")
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 20
    for freedom, bound, source, tests in rows:
        assert all((freedom, bound, source)), freedom
        named = re.findall(r"`([^`]+)`", tests)
        assert ", ".join(f"`{name}`" for name in named) == tests
        for name in named:
            assert re.fullmatch(r"tests/[\w/]+/test_\w+\.py", name)
            assert (ROOT / name).is_file(), name
