"""The tables of the page, from the lines of real brokers and a journal."""

import json
from pathlib import Path

import pytest

from groupquake.attached import LiveView, Rebalances

JAVA = (
    "{sn} {ms} 2027010908490 group-coordinator-event-processor-0 INFO [GroupCoordinator id=1"
    " topic=__consumer_offsets partition=4] {text}"
    " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
SCALA = (
    "2026-11-21 12:11:19,{ms} executor-Rebalance INFO [GroupCoordinator 1]: {text}"
    " (kafka.coordinator.group.GroupCoordinator)"
)
JAVA_LINES = (
    JAVA.format(
        sn=1,
        ms=1795263079202,
        text="Preparing to rebalance group app in state PreparingRebalance with old generation 3"
        " (reason: Adding new member a-1 with group instance id null; client reason: not"
        " provided).",
    ),
    JAVA.format(sn=2, ms=1795263079802, text="Stabilized group app generation 4 with 2 members."),
)
SCALA_LINES = (
    SCALA.format(
        ms=202,
        text="Preparing to rebalance group app in state PreparingRebalance with old generation 3"
        " (__consumer_offsets-2) (reason: Adding new member a-1 with group instance id null;"
        " client reason: not provided)",
    ),
    SCALA.format(
        ms=802, text="Stabilized group app generation 4 (__consumer_offsets-2) with 2 members"
    ),
)
ROW = {
    "at": "12:11:19.202",
    "group": "app",
    "generation": "3 → 4",
    "reason": "Adding new member a-1 with group instance id null",
    "members": "2",
    "duration": "0.600 s",
}


def rows_of(*lines: str) -> list[dict[str, str]]:
    seen = Rebalances()
    for line in lines:
        seen.take(line)
    return seen.rows()


@pytest.mark.parametrize("lines", [JAVA_LINES, SCALA_LINES])
def test_both_coordinators_give_the_same_rebalance(lines: tuple[str, ...]) -> None:
    assert rows_of(*lines) == [ROW]


def test_a_rebalance_shows_before_it_is_through() -> None:
    assert rows_of(JAVA_LINES[0]) == [ROW | {"generation": "3 → …", "members": "", "duration": ""}]


def test_a_group_that_empties_ends_its_rebalance() -> None:
    for empty in (
        JAVA.format(sn=2, ms=1795263079202, text="Group app with generation 4 is now empty."),
        SCALA.format(
            ms=202, text="Group app with generation 4 is now empty (__consumer_offsets-2)"
        ),
    ):
        [row] = rows_of(JAVA_LINES[0], empty)
        assert (row["generation"], row["members"], row["duration"]) == ("3 → 4", "0", "0.000 s")


def test_the_latest_row_is_first_and_unreadable_lines_are_skipped() -> None:
    later = JAVA_LINES[0].replace("1795263079202", "1795263089202")
    cut = JAVA_LINES[0][40:]
    assert [row["at"] for row in rows_of(JAVA_LINES[0], cut, later)] == [
        "12:11:29.202",
        "12:11:19.202",
    ]


def test_the_live_view_grows_with_its_folder(tmp_path: Path) -> None:
    live_view = LiveView(tmp_path)
    assert live_view.tables() == {"rebalances": [], "faults": []}
    log = tmp_path / "brokers" / "1" / "group.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"{JAVA_LINES[0]}\n{JAVA_LINES[1][:50]}")
    intent = {
        "at_ms": 1795263079000,
        "event": "intent",
        "fault_id": "f1.1",
        "fault": "member.restart",
        "target": "clerk-0",
    }
    journal = tmp_path / "journal.jsonl"
    journal.write_text(f"{json.dumps(intent)}\n")
    first = live_view.tables()
    assert first["rebalances"][0]["generation"] == "3 → …"
    assert first["faults"] == [
        {
            "id": "f1.1",
            "fault": "member.restart",
            "target": "clerk-0",
            "injected": "",
            "healed": "",
            "verified": "",
            "witness": "",
        }
    ]
    with log.open("a") as more:
        more.write(f"{JAVA_LINES[1][50:]}\n")
    with journal.open("a") as more:
        for event, fields in (
            ("injected", {}),
            ("healed", {"healed": True}),
            ("verified", {"verified": False, "witness": "nobody saw it"}),
        ):
            more.write(json.dumps({"at_ms": 1795263079500, "event": event, **fields,
                                   "fault_id": "f1.1"}) + "\n")  # fmt: skip
    later = live_view.tables()
    assert later["rebalances"] == [ROW]
    assert later["faults"][0] | {"id": "f1.1"} == first["faults"][0] | {
        "injected": "12:11:19.500",
        "healed": "12:11:19.500",
        "verified": "NO",
        "witness": "nobody saw it",
    }
