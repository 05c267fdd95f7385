"""What of a fault by hand is foreseen."""

import json
from pathlib import Path

import pytest

from groupquake.live.foresee import foreseen
from scenarios import ScenarioError, named

DEMO = named("demo")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "experiment.yaml").write_text(DEMO.dump())
    (tmp_path / "environment.json").write_text(json.dumps({}))
    return tmp_path


@pytest.mark.parametrize(
    ("target", "down_for", "static", "dynamic"),
    [
        ("static-0", "5s", "no rebalance", "no rebalance"),
        ("static-0", "15s", "2 rebalances", "no rebalance"),
        ("dynamic-dynamic-0", "15s", "no rebalance", "2 rebalances"),
    ],
)
def test_a_crash_is_foreseen_by_its_session(
    folder: Path, target: str, down_for: str, static: str, dynamic: str
) -> None:
    """The session lasts 10 s; a member that is back sooner is not missed, if it is static."""
    asked = {"fault": "member.kill", "target": {"names": [target]}, "down_for": down_for}
    found = foreseen(folder, asked)
    assert found["undo"] == f"start again after {down_for[:-1]} s"
    says = found["groups"]
    assert says["static"].startswith(static)
    assert says["dynamic"].startswith(dynamic)


def test_what_is_not_foreseen_says_why(folder: Path) -> None:
    asked = {"fault": "member.kill", "target": {"names": ["static-0"]}, "down_for": "5"}
    with pytest.raises(ScenarioError, match="down_for: 5 has no unit"):
        foreseen(folder, asked)
    big = [f"workload.groups.{i}.members.0.count=251" for i in (0, 1)]
    (folder / "big").mkdir()
    (folder / "big" / "experiment.yaml").write_text(DEMO.override([*big, "expect=[]"]).dump())
    (folder / "big" / "environment.json").write_text(json.dumps({}))
    with pytest.raises(ScenarioError, match="more than 500 members"):
        foreseen(folder / "big", {**asked, "down_for": "5s"})
