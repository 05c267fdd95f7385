"""`groupquake new`: whatever is answered, the file is an experiment."""

import io
import sys
from itertools import product
from pathlib import Path

import pytest

from chaos.plan import make_plan
from groupquake.commands.new import BREAKS, OF_STATIC
from groupquake.simulate.forecast import warnings
from scenarios import load
from tests.groupquake.conftest import Command, Done


@pytest.fixture
def answered(groupquake: Command, monkeypatch: pytest.MonkeyPatch):
    def answer(file: str, *answers: str) -> Done:
        text = "".join(f"{one}\n" for one in answers)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        return groupquake("new", file)

    return answer


@pytest.mark.parametrize(("kind", "breaks"), [*product(("static", "dynamic", "both"), BREAKS)])
def test_every_answer_makes_an_experiment(answered, tmp_path: Path, kind: str, breaks: str) -> None:
    for number, (count, expected) in enumerate(product(("1", "9"), ("0", "unknown"))):
        file = f"mine-{number}.yaml"
        done = answered(file, kind, count, "7s", breaks, "3s", expected)
        if kind == "dynamic" and breaks in OF_STATIC:
            assert (done.code, (tmp_path / file).exists()) == (64, False)
            assert "is not one of 'restart', 'kill', 'coordinator', 'network'" in done.err
            continue
        assert done.code == 0, done.err
        made = load(tmp_path / file)
        members = (2 if kind == "both" else 1) * int(count)
        assert (len(made.members()), made.workload.groups[0].session_timeout_ms) == (members, 7000)
        assert [one.rebalances.min for one in made.bounds] == ([0] if expected == "0" else [])
        plan = make_plan(made, 1)
        ends_ms = max(step.at_ms + step.what.lasting_ms for step in plan.steps)
        assert ends_ms <= made.phases.impact_ms + plan.steps[0].at_ms
        assert expected == "0" or not warnings(made, plan)


def test_all_defaults_are_taken_and_no_file_is_overwritten(
    groupquake: Command, tmp_path: Path
) -> None:
    done = groupquake("new", "--yes")
    assert done.code == 0
    assert "groupquake run mine.yaml" in done.out
    text = (tmp_path / "mine.yaml").read_text()
    assert all(len(line) <= 100 for line in text.splitlines())
    again = groupquake("new", "--yes")
    assert (again.code, "mine.yaml exists already; name another file" in again.err) == (64, True)
    assert (tmp_path / "mine.yaml").read_text() == text


def test_a_bad_answer_is_asked_for_again_and_none_at_all_is_an_error(
    answered, groupquake: Command, tmp_path: Path
) -> None:
    done = answered("a.yaml", "quiet", "static", "0", "2", "3s", "8s", "kill", "1s", "3s", "x", "4")
    assert done.code == 0
    for complaint in ("'quiet' is not one of", "0 is not in the range", "from 6s to", "from 2s to"):
        assert complaint in done.err
    made = load(tmp_path / "a.yaml")
    assert made.bounds[0].rebalances.min == 4
    ended = answered("b.yaml", "static")
    assert (ended.code, "--yes takes the defaults" in ended.err) == (64, True)
    assert groupquake("new", "b.txt").code == 64
    assert not (tmp_path / "b.yaml").exists()
