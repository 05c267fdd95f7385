"""The annotated experiment is a file that groupquake takes, with each of its parts explained."""

import re
from pathlib import Path

from chaos.plan import make_plan
from scenarios import load

PAGE = Path(__file__).parents[2] / "docs" / "experiments" / "annotated.md"


def test_the_annotated_experiment_loads_and_says_what_each_part_is(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    file = tmp_path / "mine.yaml"
    file.write_text(text, "utf-8")
    experiment = load(file)
    assert [member.name for member in experiment.members()] == [f"payments-{n}" for n in range(3)]
    assert len(make_plan(experiment, seed=1).steps) == 4
    assert experiment.expect
    runs_without_comment = re.split(r"^.*#.*$", text, flags=re.MULTILINE)
    assert max(len(run.strip().splitlines()) for run in runs_without_comment) <= 4
