"""The tables of the page, from the lines of real brokers and a journal."""

import json
from pathlib import Path

import pytest

from groupquake.attached import LiveView, Rebalances


def java(number: int, ms: int, text: str) -> str:
    return (
        f"{number} {1795263079000 + ms} 2027010908490 group-coordinator-event-processor-0 INFO"
        f" [GroupCoordinator id=1 topic=__consumer_offsets partition=4] {text}"
        " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
    )


def scala(ms: int, text: str) -> str:
    return (
        f"2026-11-21 12:11:19,{ms} executor-Rebalance INFO [GroupCoordinator 1]: {text}"
        " (kafka.coordinator.group.GroupCoordinator)"
    )


PREPARING = "Preparing to rebalance group app in state PreparingRebalance with old generation 3"
WHY = "Adding new member a-1 with group instance id null; client reason: not provided"
BEGUN = java(1, 202, f"{PREPARING} (reason: {WHY}).")
STABLE = java(2, 802, "Stabilized group app generation 4 with 2 members.")
BEGUN_BY_SCALA = scala(202, f"{PREPARING} (__consumer_offsets-2) (reason: {WHY})")
ROW = {
    "at": "12:11:19.202",
    "group": "app",
    "generation": "3 → 4",
    "reason": "Adding new member a-1 with group instance id null",
    "members": "2",
    "duration": "0.600 s",
}
GOES_ON = ROW | {"generation": "3 → …", "members": "", "duration": ""}
EMPTY = ROW | {"members": "0", "duration": "0.000 s"}
STABLE_BY_SCALA = "Stabilized group app generation 4 (__consumer_offsets-2) with 2 members"


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        pytest.param([BEGUN, STABLE], [ROW], id="java"),
        pytest.param([BEGUN_BY_SCALA, scala(802, STABLE_BY_SCALA)], [ROW], id="scala"),
        pytest.param([BEGUN], [GOES_ON], id="before it is through"),
        pytest.param(
            [BEGUN, java(2, 202, "Group app with generation 4 is now empty.")], [EMPTY],
            id="a group that empties",
        ),
        pytest.param(
            [
                BEGUN_BY_SCALA,
                scala(202, "Group app with generation 4 is now empty (__consumer_offsets-2)"),
            ],
            [EMPTY],
            id="a group that empties, by scala",
        ),
        pytest.param(
            [BEGUN, BEGUN[40:], java(1, 10_202, f"{PREPARING} (reason: {WHY}).")],
            [GOES_ON | {"at": "12:11:29.202"}, GOES_ON],
            id="a line that cannot be read, and the latest row first",
        ),
    ],
)  # fmt: skip
def test_rebalances(lines: list[str], rows: list[dict[str, str]]) -> None:
    seen = Rebalances()
    for line in lines:
        seen.take(line)
    assert seen.rows() == rows


def test_the_live_view_grows_with_its_folder(tmp_path: Path) -> None:
    live_view = LiveView(tmp_path)
    assert live_view.tables() == {"rebalances": [], "faults": []}
    log, journal = tmp_path / "brokers" / "1" / "group.log", tmp_path / "journal.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(f"{BEGUN}\n{STABLE[:50]}")

    def note(event: str, **fields: object) -> None:
        entry = {"at_ms": 1795263079500, "event": event, "fault_id": "f1.1", **fields}
        with journal.open("a") as file:
            file.write(f"{json.dumps(entry)}\n")

    note("intent", fault="member.restart", target="clerk-0")
    first = live_view.tables()
    intent = {"id": "f1.1", "fault": "member.restart", "target": "clerk-0"}
    unknown = dict.fromkeys(("injected", "healed", "verified", "witness"), "")
    assert first == {"rebalances": [GOES_ON], "faults": [intent | unknown]}
    with log.open("a") as more:
        more.write(f"{STABLE[50:]}\n")
    note("injected")
    note("healed", healed=True)
    note("verified", verified=False, witness="nobody saw it")
    seen = {
        "injected": "12:11:19.500",
        "healed": "12:11:19.500",
        "verified": "NO",
        "witness": "nobody saw it",
    }
    assert live_view.tables() == {"rebalances": [ROW], "faults": [intent | seen]}
