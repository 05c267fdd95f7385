"""What the live page knows of a run, from the lines of real brokers, a history and a journal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupquake.live.facts import Facts
from groupquake.live.state import State
from scenarios import load
from tests.groupquake.conftest import SMALL

ZERO_MS = 1795263079000
"""2026-11-21 12:11:19 UTC."""
UUID = "39367e34-ab84-4575-b0e1-db58d4e35945"
PREPARING = "Preparing to rebalance group dynamic in state PreparingRebalance with old generation 3"
WHY = f"Adding new member dynamic-dynamic-1-{UUID} with group instance id null"
NOT_PROVIDED = "; client reason: not provided"


def java(ms: int, text: str) -> str:
    return (
        f"1 {ZERO_MS + ms} 2027010908490 group-coordinator-event-processor-0 INFO"
        f" [GroupCoordinator id=1 topic=__consumer_offsets partition=4] {text}"
        " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
    )


def scala(ms: int, text: str) -> str:
    return (
        f"2026-11-21 12:11:{19 + ms // 1000},{ms % 1000:03d} executor-Rebalance INFO"
        f" [GroupCoordinator 1]: {text} (kafka.coordinator.group.GroupCoordinator)"
    )


def answered_join(ms: int, client: str, generation: int) -> str:
    content = {
        "requestHeader": {"requestApiKeyName": "JOIN_GROUP", "clientId": client},
        "request": {"groupId": "dynamic"},
        "response": {"errorCode": 0, "generationId": generation, "memberId": f"{client}-{UUID}"},
    }
    body = f"Completed request:{json.dumps(content)}"
    return f"2 {ZERO_MS + ms} 2027010908490 data-plane-1 DEBUG {body} (kafka.request.logger)"


class Run:
    """A run folder that grows, and its state."""

    def __init__(self, folder: Path) -> None:
        file = folder / "experiment.yaml"
        file.write_text(SMALL)
        self.folder = folder
        self.facts = Facts(folder, ("static", "dynamic"))
        self.maker = State(folder, load(file))

    def log(self, *lines: str, broker: int = 1) -> None:
        self._append(f"brokers/{broker}/group.log", *lines)

    def note(self, ms: int, event: str, **fields: Any) -> None:
        self._append("journal.jsonl", json.dumps({"at_ms": ZERO_MS + ms, "event": event, **fields}))

    def see(self, ms: int, event: str, member: str = "dynamic-dynamic-1", **fields: Any) -> None:
        about = {"member": member, "group": "dynamic", "kind": "dynamic", "event": event}
        self._append("history.jsonl", json.dumps({"at_ms": ZERO_MS + ms, **about, **fields}))

    def state(self, ms: int) -> dict[str, Any]:
        self.facts.read()
        return self.maker.at(self.facts, ZERO_MS + ms)

    def _append(self, name: str, *lines: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


STABLE = "Stabilized group dynamic generation 4 with 2 members."
BEGUN = {
    "group": "dynamic",
    "at_ms": ZERO_MS + 202,
    "reason": WHY,
    "by": "load",
    "old_generation": 3,
    "generation": None,
    "members": None,
    "took_ms": None,
}
DONE = BEGUN | {"generation": 4, "members": 2, "took_ms": 600}


@pytest.mark.parametrize(
    ("lines", "rebalances"),
    [
        pytest.param(
            [java(202, f"{PREPARING} (reason: {WHY}{NOT_PROVIDED})."), java(802, STABLE)],
            [DONE],
            id="java",
        ),
        pytest.param(
            [
                scala(202, f"{PREPARING} (__consumer_offsets-2) (reason: {WHY})"),
                scala(802, STABLE.replace(" with", " (__consumer_offsets-2) with").rstrip(".")),
            ],
            [DONE],
            id="scala",
        ),
        pytest.param(
            [
                java(202, f"{PREPARING} (reason: {WHY}).")[40:],
                java(202, f"{PREPARING} (reason: {WHY})."),
            ],
            [BEGUN],
            id="a line that cannot be read, and one that goes on",
        ),
        pytest.param(
            [
                java(202, f"{PREPARING} (reason: {WHY})."),
                java(202, "Group dynamic with generation 4 is now empty."),
            ],
            [DONE | {"members": 0, "took_ms": 0}],
            id="a group that empties",
        ),
    ],
)  # fmt: skip
def test_rebalances(run: Run, lines: list[str], rebalances: list[dict[str, Any]]) -> None:
    run.log(*lines)
    assert run.state(2000)["rebalances"] == rebalances


def test_other_groups_of_the_cluster_are_left_out(run: Run) -> None:
    run.log(java(202, f"{PREPARING} (reason: {WHY}).".replace("group dynamic", "group other")))
    run.log(answered_join(300, "dynamic-dynamic-1", 4).replace('"dynamic"', '"other"'))
    state = run.state(2000)
    assert (state["rebalances"], [*state["groups"]]) == ([], ["static", "dynamic"])


def formed(run: Run) -> None:
    """Let the group form, and the impact phase begin at second 10."""
    run.note(0, "phase", phase="formation")
    for ms, member in ((200, 0), (210, 1)):
        run.see(ms, "created", f"dynamic-dynamic-{member}", instance_id=None)
    run.log(java(300, f"{PREPARING} (reason: {WHY})."), java(800, STABLE))
    run.log(*(answered_join(801, f"dynamic-dynamic-{member}", 4) for member in (0, 1)))
    received = f"Assignment received from leader dynamic-dynamic-0-{UUID} for group dynamic for"
    members = "The group has 2 members, 0 of which are static."
    run.log(java(805, f"{received} generation 4. {members}"))
    run.see(900, "assigned", "dynamic-dynamic-0", partitions=["orders-0", "orders-1"])
    run.see(900, "assigned", partitions=["orders-2", "orders-3"])
    run.note(10_000, "phase", phase="impact")


def begins(run: Run, ms: int, reason: str) -> str:
    """Let a rebalance begin; return who caused it."""
    run.log(java(ms, f"{PREPARING} (reason: {reason})."))
    by: str = run.state(ms + 1)["rebalances"][-1]["by"]
    return by


def test_who_causes_a_rebalance(run: Run) -> None:
    formed(run)
    assert run.state(10_000)["rebalances"][0]["by"] == "load"
    assert (
        begins(run, 11_000, f"removing member dynamic-dynamic-0-{UUID} on heartbeat expiration.")
        == "unknown"
    )
    about = {"fault_id": "f1.1", "fault": "member.kill", "group": "dynamic", "kind": "recoverable"}
    run.note(12_000, "intent", **about, target="dynamic-dynamic-1", args={})
    run.note(12_010, "injected", fault_id="f1.1")
    run.see(12_005, "killed", partitions=["orders-2", "orders-3"])
    run.note(13_000, "healed", fault_id="f1.1", healed=True)
    # its session expires long after it was started again, under a new member id
    assert (
        begins(run, 18_000, f"removing member dynamic-dynamic-1-{UUID} on heartbeat expiration.")
        == "fault"
    )
    other = f"removing member dynamic-dynamic-0-{UUID} on heartbeat expiration."
    assert begins(run, 18_500, other) == "unknown"
    new = f"Adding new member newcomer-{UUID} with group instance id null"
    assert begins(run, 19_000, new) == "load"


def test_what_a_fault_costs(run: Run) -> None:
    formed(run)
    run.see(11_000, "revoked", partitions=["orders-2", "orders-3"])
    group = run.state(11_500)["groups"]["dynamic"]
    assert (group["unowned"], group["unowned_ms"], group["stopped_ms"]) == (2, 1000, 0)
    run.see(12_000, "assigned", partitions=["orders-2", "orders-3"])
    run.see(12_100, "error", error="commit: _NO_OFFSET", left_out=2)
    run.see(12_200, "error", error="poll: something else")
    group = run.state(14_000)["groups"]["dynamic"]
    assert (group["unowned"], group["unowned_ms"], group["stopped_ms"]) == (0, 2000, 1000)
    assert group["commit_errors"] == 3
    assert group["owners"]["dynamic-dynamic-1"] == ["orders-2", "orders-3"]
    assert (group["generation"], group["members"], group["coordinator"]) == (4, 2, "1")


def test_who_takes_an_instance_id_leaves_nothing_without_an_owner(run: Run) -> None:
    formed(run)
    owned = {"partitions": ["orders-2", "orders-3"]}
    run.see(11_000, "created", "dynamic-dynamic-1.duplicate")
    run.see(11_500, "assigned", "dynamic-dynamic-1.duplicate", **owned)
    run.see(11_700, "fenced", error="its instance id", **owned)
    run.see(11_800, "closed", partitions=[])
    state = run.state(12_000)
    group = state["groups"]["dynamic"]
    assert (group["unowned"], group["unowned_ms"]) == (0, 0)
    assert [name for name, one in state["members"].items() if one["fenced"]] == [
        "dynamic-dynamic-1"
    ]
    run.see(13_000, "created")
    assert not any(one["fenced"] for one in run.state(14_000)["members"].values())


LOADED = "Loaded classic group dynamic with 2 members."
LOADING = "Loading group metadata for dynamic with generation 4"


@pytest.mark.parametrize(("line", "text"), [(java, LOADED), (scala, LOADING)])
def test_who_loads_a_group_coordinates_it(
    run: Run, line: Callable[[int, str], str], text: str
) -> None:
    formed(run)
    about = {"fault": "broker.kill", "group": None, "target": "broker-1", "kind": "recoverable"}
    run.note(10_500, "intent", fault_id="h1", **about, args={"broker": 1})
    run.note(10_600, "injected", fault_id="h1")
    run.log(line(12_000, text), broker=2)
    state = run.state(13_000)
    group = state["groups"]["dynamic"]
    assert (group["coordinator"], group["generation"], group["members"]) == ("2", 4, 2)
    block = next(one for one in state["figure"]["blocks"] if one["name"] == "dynamic")
    row = next(one for one in block["rows"] if one["name"] == "coordinator")
    assert [(bar["text"], bar["from"], bar["to"]) for bar in row["bars"]] == [
        ("broker 1", 0.3, 12.0),
        ("broker 2", 12.0, None),
    ]


def test_lag_is_what_producers_wrote_and_the_group_has_not_processed(run: Run) -> None:
    formed(run)
    assert run.state(10_500)["groups"]["dynamic"]["lag"] is None
    run.see(11_000, "produced", "producer-0", group=None, kind="producer", records=20, errors=0)
    run.see(11_100, "processed", ranges={"orders-0": [[0, 4], [2, 6]], "orders-1": [[0, 1]]})
    assert run.state(12_000)["groups"]["dynamic"]["lag"] == 20 - 7 - 2


def test_the_forecast_of_the_phases_so_far(tmp_path: Path) -> None:
    due = {"formation": {"total": [1, 2]}, "impact": {"total": [2, None]}}
    content = {"groups": {"dynamic": {"rebalances": due}}}
    (tmp_path / "forecast.json").write_text(json.dumps(content))
    run = Run(tmp_path)
    run.note(0, "phase", phase="formation")
    assert run.state(10)["groups"]["dynamic"]["due"] == "1..2"
    run.note(20, "phase", phase="impact")
    groups = run.state(30)["groups"]
    assert (groups["dynamic"]["due"], groups["static"]["due"]) == ("3..", None)


def test_phases_end_as_planned_unless_another_began(run: Run) -> None:
    formed(run)
    phases = run.state(11_000)["phases"]
    assert [(one["name"], one["ends_ms"] - ZERO_MS) for one in phases] == [
        ("formation", 10_000),
        ("impact", 17_000),
    ]


def drawn_faults(state: dict[str, Any]) -> list[str]:
    rows = (row for block in state["figure"]["blocks"] for row in block["rows"])
    kinds = (bar["kind"] for row in rows for bar in row["bars"])
    return [kind for kind in kinds if kind.startswith("fault")]


def test_faults_of_the_journal(run: Run) -> None:
    about = {
        "fault": "member.restart",
        "group": "static",
        "target": "clerk-0",
        "kind": "recoverable",
    }
    run.note(100, "intent", fault_id="h1", **about, args={})
    fault = run.state(200)["faults"][0]
    assert fault == {
        "id": "h1", "fault": "member.restart", "target": "clerk-0", "injected_ms": None,
        "healed_ms": None, "healed": False, "verified": None, "witness": "", "by_hand": True,
    }  # fmt: skip
    run.note(300, "injected", fault_id="h1")
    assert drawn_faults(run.state(350)) == ["fault"]
    run.note(400, "healed", fault_id="h1", healed=True)
    run.note(500, "verified", fault_id="h1", verified=False, witness="nobody saw it")
    seen = {"injected_ms": ZERO_MS + 300, "healed_ms": ZERO_MS + 400, "healed": True}
    seen |= {"verified": False, "witness": "nobody saw it"}
    state = run.state(600)
    assert state["faults"] == [fault | seen]
    assert drawn_faults(state) == ["fault unverified"]


def test_lanes_are_coloured_by_generation_and_end_with_their_members(run: Run) -> None:
    formed(run)
    run.see(12_000, "killed", "dynamic-dynamic-0", partitions=["orders-0", "orders-1"])
    state = run.state(14_000)
    block = next(one for one in state["figure"]["blocks"] if one["name"] == "dynamic")
    bars = {row["name"]: [(bar["from"], bar["to"], bar["kind"]) for bar in row["bars"]]
            for row in block["rows"] if not row["head"]}  # fmt: skip
    assert bars == {
        "dynamic-dynamic-0": [(0.801, 12.0, "gen-3")],
        "dynamic-dynamic-1": [(0.801, None, "gen-3")],
    }
    assert [(one["from"], one["to"]) for one in block["bands"]] == [(0.3, 0.805)]
    assert [name for name, one in state["members"].items() if one["in"]] == ["dynamic-dynamic-1"]


def test_without_a_request_log_the_assignments_of_clients_begin_lanes(run: Run) -> None:
    run.see(100, "created", instance_id=None)
    run.see(200, "assigned", partitions=[], member_id="x")
    assert run.state(300)["members"]["dynamic-dynamic-1"]["in"]


def test_a_file_may_grow_in_the_middle_of_a_line(run: Run) -> None:
    whole = java(202, f"{PREPARING} (reason: {WHY}).")
    log = run.folder / "brokers" / "1" / "group.log"
    log.parent.mkdir(parents=True)
    log.write_text(whole[:50])
    assert run.state(300)["rebalances"] == []
    with log.open("a") as more:
        more.write(f"{whole[50:]}\n")
    assert run.state(300)["rebalances"] == [BEGUN]
