"""The forecast follows from the protocol: what is certain of it is known without a run."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from chaos.plan import make_plan
from groupquake.simulate.forecast import Forecast, Interval, foresee, warnings
from scenarios import Experiment, ScenarioError, named, names

DOWN = "2s"
SIZE = 3


def experiment(
    *faults: Mapping[str, Any], kind: str = "static", brokers: int = 3, **changes: Any
) -> Experiment:
    """Return an experiment of one group `shop` of three members; `changes` are of the group."""
    members: dict[str, Any] = {"kind": kind, "count": SIZE}
    if kind == "static":
        members["instance_id"] = "shop-{n}"
    group: dict[str, Any] = {
        "name": "shop", "topics": ["orders"], "session_timeout": "6s", "heartbeat_interval": "1s",
        "max_poll_interval": "30s", "members": [members],
    }  # fmt: skip
    return Experiment.model_validate({
        "name": "deploy",
        "cluster": {"brokers": brokers, "config": {"broker.session.timeout.ms": 3_000}},
        "workload": {
            "topics": [
                {"name": name, "partitions": 6, "replication_factor": brokers}
                for name in changes.get("topics", ["orders"])
            ],
            "groups": [group | changes],
        },
        "faults": list(faults),
        "phases": {"impact": "40s", "recovery": "5s"},
    })  # fmt: skip


def bounce(down_for: str = DOWN, every: str = "12s") -> dict[str, Any]:
    """Return a rolling restart of all members."""
    return {
        "fault": "group.bounce", "at": "1s", "every": every, "target": "all", "group": "shop",
        "down_for": down_for,
    }  # fmt: skip


def foreseen(of: Experiment, rules: str | None = None) -> Forecast:
    """Foresee an experiment with the plan of a seed."""
    return foresee(of, make_plan(of, 1), rules)


def impact(forecast: Forecast, reason: str | None = None) -> Interval:
    """Return how often the group rebalances in the impact phase."""
    return forecast.groups["shop"].rebalances("impact", reason)


def test_static_members_that_are_back_within_their_session_cost_nothing() -> None:
    """KIP-345: a static member returns without a rebalance."""
    assert impact(foreseen(experiment(bounce()))) == (0, 0)


def test_each_static_member_that_is_away_longer_costs_two_rebalances() -> None:
    """Its session ends, and it is new when it is back."""
    forecast = foreseen(experiment(bounce(down_for="10s")))
    assert impact(forecast, "session_expired") == (SIZE, SIZE)
    assert impact(forecast, "new_member") == (SIZE, SIZE)


def test_each_dynamic_member_leaves_and_joins() -> None:
    """It sends LeaveGroup as it closes."""
    forecast = foreseen(experiment(bounce(), kind="dynamic"))
    assert impact(forecast, "leave") == (SIZE, SIZE)
    assert impact(forecast, "new_member") == (SIZE, SIZE)
    assert impact(forecast) == (2 * SIZE, 2 * SIZE)


def test_a_killed_dynamic_member_does_not_leave() -> None:
    """Its session ends."""
    kill = {"fault": "member.kill", "at": "1s", "down_for": "9s", "target": {
        "names": ["shop-dynamic-0"]}}  # fmt: skip
    forecast = foreseen(experiment(kill, kind="dynamic"))
    assert impact(forecast, "leave") == (0, 0)
    assert impact(forecast, "session_expired") == (1, 1)


@pytest.mark.parametrize("verb", ["kill", "stop"])
def test_a_stored_group_survives_its_coordinator(verb: str) -> None:
    """Its record is loaded elsewhere, and its sessions restart."""
    fault = {"fault": f"broker.{verb}", "at": "1s", "down_for": "9s",
             "target": {"coordinator-of": "shop"}}  # fmt: skip
    assert impact(foreseen(experiment(fault, session_timeout="20s"))) == (0, 0)


def test_a_duplicate_fences_its_member_without_a_rebalance() -> None:
    """The instance id has one owner after the other."""
    fault = {"fault": "member.duplicate-instance", "at": "1s", "lasts": "9s",
             "target": {"names": ["shop-1"]}}  # fmt: skip
    assert impact(foreseen(experiment(fault))) == (0, 0)


def test_members_that_are_removed_come_back() -> None:
    """One LeaveGroup names two instances: one rebalance for it, which they join as new ones."""
    fault = {"fault": "group.remove-members", "at": "1s", "group": "shop",
             "instances": ["shop-0", "shop-1"]}  # fmt: skip
    assert impact(foreseen(experiment(fault)), "leave") == (1, 1)


def test_a_member_that_does_not_poll_leaves_and_is_back() -> None:
    """After its max.poll.interval, if it is dynamic."""
    fault = {"fault": "member.slow-poll", "at": "1s", "lasts": "20s",
             "target": {"names": ["shop-dynamic-0"]}}  # fmt: skip
    forecast = foreseen(experiment(fault, kind="dynamic", max_poll_interval="6s"))
    assert impact(forecast, "leave") == (1, 1)


@pytest.mark.parametrize(
    ("kind", "client", "left"),
    [("dynamic", "librdkafka", 1), ("static", "librdkafka", 1), ("static", "wire", 0)],
)
def test_a_member_that_unsubscribes_is_back(kind, client, left) -> None:
    """librdkafka's rd_kafka_cgrp_leave_maybe leaves, static or not; Kafka's own stays if static."""
    name = "shop-0" if kind == "static" else "shop-dynamic-0"
    fault = {"fault": "member.unsubscribe", "at": "1s", "for": "4s", "target": {"names": [name]}}
    of = {"kind": kind, "count": SIZE, "client": client}
    members = [of | {"instance_id": "shop-{n}"} if kind == "static" else of]
    forecast = foreseen(experiment(fault, members=members))
    assert impact(forecast, "leave") == (left, left)


def test_cooperative_members_go_on_while_they_rebalance() -> None:
    """KIP-429: only what moves is without an owner, and nobody stops."""
    eager = foreseen(experiment(bounce(), kind="dynamic")).groups["shop"]
    other = experiment(bounce(), kind="dynamic", assignor="cooperative-sticky")
    cooperative = foreseen(other).groups["shop"]
    assert eager.stopped_ms.least > 0
    assert cooperative.stopped_ms == (0, 0)
    assert (eager.unowned_s.most or 0) > (cooperative.unowned_s.most or 0)


def test_partitions_lie_idle_while_static_members_are_away() -> None:
    """Each owns two of six partitions, and is away for two seconds at least."""
    unowned = foreseen(experiment(bounce())).groups["shop"].unowned_s
    assert unowned.least >= SIZE * 2 * 2


def net(fault: str, seconds: int, **keys: Any) -> dict[str, Any]:
    """Return a fault on the wire of one member."""
    member = {"target": {"names": ["shop-dynamic-1"]}}
    return {"fault": f"net.{fault}", "at": "1s", "for": f"{seconds}s", **member, **keys}


def test_a_member_that_is_cut_off_past_its_session_is_removed_and_returns() -> None:
    """Its heartbeats do not arrive; when it can join again, it is new."""
    cut_off = foreseen(experiment(net("isolate", 14), kind="dynamic"))
    assert impact(cut_off, "session_expired") == (1, 1)
    assert impact(cut_off, "new_member") == (1, 1)


@pytest.mark.parametrize(
    "fault",
    [
        net("isolate", 3),
        net("isolate", 3, way="to-client"),
        net("delay", 9, latency="300ms"),
        net("duplicate", 9, apis=["HEARTBEAT"]),
        net("hold", 3, apis=["HEARTBEAT"]),
        net("drop-answers", 9, apis=["HEARTBEAT"], count=1),
    ],
    ids=lambda fault: fault["fault"],
)
def test_what_is_shorter_than_a_session_on_the_wire_costs_nothing(fault: Mapping[str, Any]) -> None:
    """The member is heard of in time."""
    assert impact(foreseen(experiment(fault, kind="dynamic"))) == (0, 0)


def test_a_sync_group_that_is_held_holds_its_leader_up() -> None:
    """The group completes its rebalance when the leader's assignments arrive."""
    kill = {"fault": "member.kill", "at": "2s", "down_for": "9s",
            "target": {"names": ["shop-dynamic-0"]}}  # fmt: skip
    hold = net("hold", 20, apis=["SYNC_GROUP"])
    free, held = (
        foreseen(experiment(*faults, kind="dynamic")).groups["shop"].stopped_ms
        for faults in ([kill], [kill, hold])
    )
    assert held.least > (free.most or 0)


def test_a_lost_join_answer_leaves_an_id_behind() -> None:
    """KIP-394: the dynamic member asks again, and the group waits for the first id."""
    restart = {"fault": "member.restart", "at": "2s", "down_for": "3s",
               "target": {"names": ["shop-dynamic-1"]}}  # fmt: skip
    lost = net("drop-answers", 20, apis=["JOIN_GROUP"], count=1)
    forecast = foreseen(experiment(restart, lost, kind="dynamic"))
    assert impact(forecast) == (2, 2)


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_each_member_may_see_at_its_own_time_that_a_topic_is_gone(kind: str) -> None:
    """The one that sees it first causes a rebalance, and others if they do not see it by then."""
    fault = {"fault": "topic.delete", "at": "2s", "topic": "orders"}
    forecast = foreseen(
        experiment(fault, kind=kind, topics=["orders", "audit"], metadata_max_age="2s")
    )
    due = impact(forecast)
    assert due.least == 1
    assert due.most is not None
    assert due.most <= SIZE
    assert forecast.groups["shop"].rebalances("recovery") == (0, 0)


@pytest.mark.parametrize("client", ["wire", "java"])
def test_how_another_client_gives_up_is_not_foreseen(client: str) -> None:
    """The group is left open upwards, and the fault is named."""
    given = experiment(
        net("delay", 9, latency="300ms"),
        members=[{"kind": "dynamic", "count": SIZE, "client": client}],
    )
    forecast = foreseen(given)
    assert impact(forecast) == (0, None)
    assert forecast.notes == (f"net.delay: when {client} gives a request up",)


def test_what_virtual_time_does_not_have_leaves_the_group_open() -> None:
    """A fault of the disk is not foreseen, and is named."""
    fault = {"fault": "disk.full", "at": "1s", "down_for": "9s", "target": "controller"}
    forecast = foreseen(experiment(fault))
    assert impact(forecast) == (0, None)
    assert forecast.notes == ("disk.full: virtual time has no volume",)


def test_the_rules_decide() -> None:
    """Before 2.8.1 (KAFKA-12890) nothing else is due here; a name without rules is refused."""
    assert impact(foreseen(experiment(bounce()), "2.7")) == (0, 0)
    with pytest.raises(ScenarioError, match="no such rules"):
        foreseen(experiment(bounce()), "1.0")


def test_a_steady_state_that_is_not_met_is_named() -> None:
    """No fault is injected in such a run."""
    hasty = experiment(bounce(), kind="dynamic").override(["steady_state.within=1ms"])
    [note] = foreseen(hasty).notes
    assert "steady state may not be met" in note


def expecting(rebalances: object, *faults: Mapping[str, Any]) -> Experiment:
    """Return an experiment that expects so many rebalances in its impact phase."""
    document = yaml.safe_load(experiment(*faults).dump())
    expected = {"group": "shop", "phase": "impact", "rebalances": rebalances}
    return Experiment.model_validate(document | {"expect": [expected]})


def test_an_expectation_that_cannot_come_out_is_named_with_its_cause() -> None:
    """In one line."""
    wrong = expecting(0, bounce(down_for="10s"))
    [line] = warnings(wrong, make_plan(wrong, 0))
    assert line == (
        "expect: 0 rebalances of shop in impact, but 6 are due: each member is away 10s, its"
        " session ends after 6s"
    )


def test_a_cause_that_is_one_member_s_says_so() -> None:
    """Two rebalances are due, for its end and for its return."""
    one = {"fault": "member.restart", "at": "1s", "target": {"names": ["shop-1"]}}
    wrong = expecting(0, one | {"down_for": "10s"})
    [line] = warnings(wrong, make_plan(wrong, 0))
    assert line.endswith("2 are due: the member is away 10s, its session ends after 6s")


@pytest.mark.parametrize("rebalances", [6, {"min": 6}, {"max": 7}, {"min": 1, "max": 6}])
def test_an_expectation_that_can_come_out_is_not(rebalances: object) -> None:
    """Whatever its form."""
    right = expecting(rebalances, bounce(down_for="10s"))
    assert not warnings(right, make_plan(right, 0))


def test_restarts_that_overlap_are_named() -> None:
    """The controller lets each wait for the one before."""
    wrong = expecting(0, bounce(down_for="4s", every="3s"))
    [line] = warnings(wrong, make_plan(wrong, 0))
    assert line == (
        "faults: group.bounce: every 3s, but it lasts 4s: each waits for the one before"
    )


def test_a_leader_that_only_comes_back_costs_nothing_where_its_reason_counts() -> None:
    """KIP-423: on a release the group rebalances, and awaits the member that is away.

    By either rules it does when its topic has grown.
    """
    given = named("rejoin-after-failover")
    rules, release = (foreseen(given, rules).groups["static"] for rules in (None, "4.3"))
    assert (rules.rebalances("impact"), release.rebalances("impact")) == ((1, 1), (2, 2))
    for of_rules, of_release in zip(rules.tallies, release.tallies, strict=True):
        assert of_rules.unowned_s < of_release.unowned_s


def test_members_that_are_away_move_little_beside_their_own_partitions() -> None:
    """20 partitions of 5 members, each away once: 40 have to move, there and back."""
    given = named("gone-and-back")
    ranged = given.override(["workload.groups.0.assignor=range"])
    ours, ranges = (foreseen(one).groups["static"] for one in (given, ranged))
    assert ours.rebalances("impact") == ranges.rebalances("impact") == (10, 10)
    assert ours.moved.least >= 40
    assert ours.moved.most - 40 < (ranges.moved.least - 40) / 2


SMALL = [name for name in names() if len(named(name).members()) < 100]


@pytest.mark.parametrize("name", SMALL)
def test_what_the_library_expects_can_come_out(name: str) -> None:
    """Real brokers met every one of these; those that are to fail are left out by `warnings`."""
    given = named(name)
    assert not warnings(given, make_plan(given, 1))


def test_a_member_that_does_not_poll_joins_no_rebalance_leaves_in_time_and_comes_back() -> None:
    """A rebalance that another one causes waits for it, until its client gives it up."""
    slow, kill = (
        {"fault": fault, "target": {"names": [f"shop-dynamic-{number}"]}, **when}
        for number, fault, when in (
            (1, "member.slow-poll", {"at": "1s", "lasts": "25s"}),
            (2, "member.kill", {"at": "2s", "down_for": "60s"}),
        )
    )
    forecast = foreseen(experiment(slow, kill, kind="dynamic", max_poll_interval="15s"))
    assert impact(forecast, "session_expired") == (1, 1)
    assert impact(forecast, "new_member") == (2, 2), "each comes back"
    assert forecast.groups["shop"].stopped_ms.least > 7_000
