"""A sweep says what session timeout keeps a deploy quiet, what that costs, and for whom."""

import pytest

from chaos.plan import make_plan
from groupquake.simulate.chance import Chance
from groupquake.simulate.forecast import profile_of
from groupquake.simulate.sweep import (
    CountedCourse,
    Sweep,
    idle_s,
    places,
    sweep,
)
from reports.judgement.run.forecast import Interval
from scenarios import Experiment, ScenarioError
from scenarios.model import Kind
from tests.groupquake.simulate.test_forecast import SIZE, bounce, experiment

STATIC, DYNAMIC = "static, eager", "dynamic, eager"
ALL = (STATIC, "static, cooperative", DYNAMIC, "dynamic, cooperative")
COOPERATIVE = "static, cooperative"
HEARTBEAT_S, REBALANCE_S = 1.0, 3.0
"""Of `experiment`; a rebalance of three live members waits for their heartbeats, and is short."""


def swept(of: Experiment, *given: str) -> Sweep:
    """Foresee a sweep."""
    return sweep(of, given, 1, None, lambda _: None)


def rebalances(found: Sweep, kind: str, **values: str) -> Interval:
    """Return how many rebalances a row of a sweep has."""
    frame = found.frame[found.frame["kind"] == kind]
    for key, value in values.items():
        frame = frame[frame[key] == value]
    [one] = frame["rebalances"]
    assert isinstance(one, Interval)
    return one


@pytest.fixture(scope="module")
def deploy() -> Sweep:
    """Return a sweep of a rolling restart in which members are away for 2 s, or for 15 s."""
    of = experiment(bounce(every="40s"), max_poll_interval="60s")
    return swept(of, "session_timeout=45s,6s,20s", "down_for=2s,15s")


@pytest.mark.parametrize("kind", ALL)
def test_each_kind_has_a_row_for_each_combination(deploy: Sweep, kind: str) -> None:
    """The same schedule for all four."""
    mine = deploy.frame[deploy.frame["kind"] == kind]
    assert len(mine) == 3 * 2
    assert [*mine.columns] == [
        "kind", "session_timeout", "down_for", "rebalances", "unowned_partition_s",
    ]  # fmt: skip


def test_who_is_away_within_the_session_costs_nothing(deploy: Sweep) -> None:
    """KIP-345; beyond it each static member costs two, as each dynamic one does always."""
    twice = (2 * SIZE, 2 * SIZE)
    assert rebalances(deploy, STATIC, session_timeout="6s", down_for="2s") == (0, 0)
    assert rebalances(deploy, STATIC, session_timeout="6s", down_for="15s") == twice
    assert rebalances(deploy, STATIC, session_timeout="20s", down_for="15s") == (0, 0)
    assert rebalances(deploy, DYNAMIC, session_timeout="45s", down_for="2s") == twice


@pytest.mark.parametrize("kind", [STATIC, COOPERATIVE])
@pytest.mark.parametrize(("away", "session_s"), [("2s", 6), ("15s", 20)])
def test_the_smallest_quiet_session_timeout_is_named_with_its_price(
    deploy: Sweep, kind: str, away: str, session_s: int
) -> None:
    """Not the first value of the line; a crash lasts a session, and a rebalance follows."""
    [line] = [line for line in deploy.said if line.startswith(f"{kind}, down_for={away}: ")]
    assert f": {session_s}s is the smallest session timeout" in line
    least, _, most = line.rpartition(" for ")[2].removesuffix(" s").partition("..")
    assert session_s - HEARTBEAT_S <= float(least) <= float(most) <= session_s + REBALANCE_S


def test_dynamic_members_are_never_quiet(deploy: Sweep) -> None:
    """They leave as they close."""
    lines = [line for line in deploy.said if line.startswith("dynamic")]
    assert len(lines) == 2 * 2
    assert all("no session timeout of the sweep is sure to keep it quiet" in one for one in lines)


def test_a_time_away_that_no_session_outlasts_is_named() -> None:
    """Beside one that is outlasted."""
    found = swept(experiment(bounce()), "session_timeout=6s,10s", "down_for=2s,11s")
    about = f"{STATIC}, down_for=11s: no session timeout of the sweep is sure to keep it quiet"
    assert about in found.said


def test_a_timeout_that_is_quiet_in_some_courses_is_not_named() -> None:
    """A member that is away for 5.5 s is back in time, or not: its last heartbeat decides."""
    found = swept(experiment(bounce(down_for="5500ms")), "session_timeout=6s,10s")
    least, most = rebalances(found, STATIC, session_timeout="6s")
    assert least == 0 < (most or 0)
    assert found.said[0].startswith(f"{STATIC}: 10s is the smallest session timeout")


@pytest.mark.parametrize(("kind", "due"), [("static", 0), ("dynamic", 2 * SIZE)])
def test_what_the_formation_leaves_to_do_is_not_the_deploys(kind: Kind, due: int) -> None:
    """Cooperative members may join once more after their steady state (KIP-429)."""
    of = experiment(bounce(), kind=kind)
    course = CountedCourse(of, make_plan(of, 1), profile_of(of), Chance("1"), kind=kind)
    tally = course.groups["shop"].tally
    tally.rebalances["impact", "leader_rejoin"] = 1
    course.run()
    assert tally.count("impact", None) == due


def test_what_is_not_foreseen_is_not_quiet() -> None:
    """A run whose steady state is not met injects nothing, and would have no rebalance."""
    hasty = experiment(bounce()).override(["steady_state.within=1ms"])
    found = swept(hasty, "session_timeout=10s,20s")
    assert any("steady state" in note for note in found.said)
    assert not any("is the smallest" in line for line in found.said)
    clock = {"fault": "clock.skew", "at": "1s", "lasts": "9s", "by": "10s",
             "target": {"brokers": [1]}}  # fmt: skip
    skewed = swept(experiment(clock), "session_timeout=10s")
    assert rebalances(skewed, STATIC) == (0, None)
    assert not any("is the smallest" in line for line in skewed.said)


def test_without_a_session_timeout_nothing_is_said_of_it() -> None:
    """The table stands alone."""
    assert not swept(experiment(bounce()), "down_for=2s").said


def test_partitions_lie_idle_until_others_have_them() -> None:
    """The crash of a member of three, from its kill until its session has ended."""
    least, most = idle_s(experiment(bounce()), "static", 1, None)
    assert most is not None
    assert 6 - HEARTBEAT_S <= least <= most <= 6 + REBALANCE_S


@pytest.mark.parametrize("kind", ALL)
def test_members_that_a_fault_names_stay_the_same_ones(kind: str) -> None:
    """Also one that is of the other kind in the file."""
    kill = {"fault": "member.kill", "at": "1s", "down_for": "9s", "target": {"names": ["shop-1"]}}
    found = swept(experiment(kill), "session_timeout=6s,20s")
    eager = rebalances(found, kind, session_timeout="6s")
    assert eager.least >= 2
    least, most = rebalances(found, kind, session_timeout="20s")
    assert (least, most) == (0, 0) if kind.startswith("static") else least >= 1


def test_a_bare_key_is_every_key_of_that_name() -> None:
    """A path is itself, and a property of the brokers has dots in its name."""
    of = experiment(bounce(), bounce())
    assert places(of, "down_for") == ["faults.0.down_for", "faults.1.down_for"]
    assert places(of, "faults.1.down_for") == ["faults.1.down_for"]
    assert places(of, "session_timeout") == ["workload.groups.0.session_timeout"]
    property_ = "broker.session.timeout.ms"
    assert places(of, property_) == [f"cluster.config.{property_}"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["sesion_timeout=6s"], "did you mean 'session_timeout'?"),
        (["session_timeout=6s,soon"], "--sweep session_timeout=soon: "),
        (["session_timeout=1s"], "heartbeat_interval"),
        (["session_timeout=6s", "session_timeout=7s"], "twice"),
        (["session_timeout"], "not KEY=VALUE"),
        (["session_timeout=6s,,7s"], "not KEY=VALUE"),
        (["faults.0.nix=1"], "unknown key"),
        (["assignor=range"], "every sweep changes it"),
    ],
)
def test_a_key_or_a_value_that_is_none_is_one_line(given: list[str], says: str) -> None:
    """Before anything is foreseen."""
    with pytest.raises(ScenarioError) as caught:
        swept(experiment(bounce()), *given)
    [line] = str(caught.value).splitlines()
    assert says in line
