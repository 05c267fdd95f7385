"""The pages that are made from the code are as the code is; README and glossary keep their form."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from chaos.plan import make_plan
from scenarios import load

ROOT = Path(__file__).parents[2]


def test_no_generated_page_is_stale() -> None:
    command = [sys.executable, ROOT / "docs" / "generate.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_annotated_experiment_loads_and_says_what_each_part_is(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "experiments" / "annotated.md").read_text("utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    file = tmp_path / "mine.yaml"
    file.write_text(text, "utf-8")
    experiment = load(file)
    assert [member.name for member in experiment.members()] == [f"payments-{n}" for n in range(3)]
    assert len(make_plan(experiment, seed=1).steps) == 4
    assert experiment.expect
    runs_without_comment = re.split(r"^.*#.*$", text, flags=re.MULTILINE)
    assert max(len(run.strip().splitlines()) for run in runs_without_comment) <= 4


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


def test_pages_and_package_say_which_python_and_java_it_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    classifiers = [one.rpartition(" ")[2] for one in project["classifiers"] if "Python" in one]
    python = f"Python {classifiers[0]} to {classifiers[-1]}"
    assert project["requires-python"] == f">={classifiers[0]}"
    java = re.search(r"Java \d+ to \d+", project["description"])
    assert java
    for page in ("README.md", "docs/tutorial.md"):
        text = (ROOT / page).read_text("utf-8")
        assert python in text, page
        assert java[0] in text, page


def test_the_glossary_is_sorted_one_line_each() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
    )
    words = [row.strip() for row in rows if row.strip() not in ("word", "---")]
    assert 10 < len(words) <= 20
    assert words == sorted(words)


def test_each_section_about_a_freedom_has_an_example_bounds_and_tests_that_exist() -> None:
    sections, _, times = (ROOT / "docs" / "trust.md").read_text("utf-8").partition("## Times\n")
    known = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    parts = sections.split("\n## ")[1:]
    assert len(parts) > 8
    for part in parts:
        title, example, *_ = part.split("\n\n")
        assert example.startswith("*Example.* "), title
        bounds, _, tests = part.partition("\nTests: ")
        assert bounds.count("\n- **") > 2, title
        assert re.fullmatch(r"`test_\w+\.py`(,\s`test_\w+\.py`)*\.\s*", tests), title
        assert set(re.findall(r"`(\w+\.py)`", tests)) <= known, title
    assert set(re.findall(r"\| (test_\w+\.py) \|", times)) <= known


def test_each_time_has_a_unit_and_a_reason() -> None:
    times = (ROOT / "docs" / "trust.md").read_text("utf-8").partition("## Times\n")[2]
    rows = re.findall(r"^\| `(\S+)`<br>([^|]+) \| ([^|]*) \|", times, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^\| `", times, re.MULTILINE)) > 150
    units = {"MS": "ms", "S": "s"}
    for name, value, why in rows:
        assert why, name
        assert value.endswith(units.get(name.rpartition("_")[2], "")), name
