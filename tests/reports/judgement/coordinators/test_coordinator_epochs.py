"""Coordinator epochs of a group, from the brokers' own lines."""

from dataclasses import replace
from typing import Any

from kafka_protocol.coordinator_lines import JAVA
from reports.judgement.coordinators.coordinator_epochs import (
    EPOCH_TEMPLATES,
    CoordinatorEpochs,
    coordinator_epochs,
)
from reports.judgement.group import check_rows, evidence_of
from reports.judgement.log.log_places import Split
from reports.judgement.log.merging import read_logs
from reports.judgement.log.parsing import Parser
from tests.recorded.logs import RECORDINGS
from tests.reports.judgement.contexts import context

RUNTIME = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"
SERVICE = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
STARTING = f"Starting up. ({SERVICE})"
LogLine = tuple[int, str]
Row = dict[str, Any]
JUDGE = context()


def load(epoch: int, partition: int = 3) -> str:
    return (
        f"Scheduling loading of metadata from __consumer_offsets-{partition} "
        f"with epoch {epoch} ({RUNTIME})"
    )


def loaded(epoch: int, partition: int = 3) -> str:
    return (
        f"Finished loading of metadata from __consumer_offsets-{partition} with epoch {epoch} in "
        f"2ms where 1ms was spent in the scheduler. Loaded 0 records which total to 0 bytes. "
        f"({RUNTIME})"
    )


def empty(group: str, partition: int = 3) -> str:
    return (
        f"topic=__consumer_offsets partition={partition}] Group {group} with generation 1 is now "
        "empty. (org.apache.kafka.coordinator.group.GroupMetadataManager)"
    )


def read(**brokers: list[LogLine]) -> tuple[CoordinatorEpochs, dict[str, list[Row]]]:
    """Read lines, given by broker as (ms, text): who had what, and the lines of each group."""
    logs: dict[Split, list[bytes]] = {}
    for name, lines in brokers.items():
        broker, sn = name[-1], 0
        texts = logs[Split(f"brokers/{broker}/group.log", 0)] = []
        for at_ms, text in lines:
            sn = 1 if text == STARTING else sn + 1
            prefix = f"id={broker}{' ' if text.startswith('topic=') else '] '}"
            line = f"{sn} {at_ms} {at_ms * 10**6} t INFO [GroupCoordinator {prefix}{text}"
            texts.append(line.encode())
    parser = Parser(JAVA, numbered=True)
    found = read_logs(logs, parser)
    rows, processes = found.tables()["transitions"], found.merged.processes
    assert all(row["template"] is not None for row in rows)
    named = (one["partition"] for one in processes if one["partition"] is not None)
    most = max(named, default=-1)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row["group"] is not None:
            groups.setdefault(row["group"], []).append(row)
    return coordinator_epochs(
        [row for row in rows if row["template"] in EPOCH_TEMPLATES], processes, most + 1
    ), groups


def epoch_events(found: CoordinatorEpochs, groups: dict[str, list[Row]]) -> list[tuple[Any, ...]]:
    judge = replace(JUDGE, epochs=found)
    lines = [
        (group, int(one.at_ms), one.broker, one.kind)
        for group, lines in groups.items()
        for one in evidence_of(judge, group, lines).epoch_events
    ]
    return sorted(lines)


def test_a_redundant_load_begins_no_epoch():
    lines = [(10, STARTING)]
    in_vain = {
        3: "The coordinator __consumer_offsets-3 is already active.",
        4: "The coordinator __consumer_offsets-4 is already loading metadata.",
        5: "Ignored loading metadata from __consumer_offsets-5 since current epoch 8 is larger "
        "than or equals to 7.",
    }
    for partition, why in in_vain.items():
        lines += [(20, load(5, partition)), (30, load(7, partition)), (31, f"{why} ({RUNTIME})")]
        lines += [(40, loaded(5, partition)), (50, empty(f"g{partition}", partition))]
    assert epoch_events(*read(b1=lines)) == [
        (f"g{partition}", at_ms, "1", kind)
        for partition in in_vain
        for at_ms, kind in ((10, "started"), (20, "loading"), (40, "loaded"), (50, "ended"))
    ]


def test_each_broker_process_ends_with_its_last_line_or_its_shutdown():
    down = [(90, f"Shutting down. ({SERVICE})"), (99, f"Shutdown complete. ({SERVICE})")]
    found = read(b1=[(10, STARTING), (20, empty("g")), (80, STARTING), *down])
    assert epoch_events(*found) == [
        ("g", 10, "1", "started"),
        ("g", 20, "1", "ended"),
        ("g", 80, "1", "started"),
        ("g", 90, "1", "ended"),
    ]


def test_a_group_without_a_partition_line_has_the_partition_of_its_hash():
    partitions = range(6)
    lines = [(10 + partition, loaded(0, partition)) for partition in partitions]
    found, _ = read(b1=[(5, STARTING), *lines])
    placed = RECORDINGS["kafka-4.3.0"].partitions
    assert len(set(placed.values())) > 3
    assert {group: found.partition_of(group) for group in placed} == placed


def test_an_epoch_is_loaded_by_one_broker_once_per_process():
    epochs, groups = read(
        b1=[(10, STARTING)]
        + [(30 + p, loaded(7, p)) for p in range(4)]
        + [(40 + p, empty(f"g{p}", p)) for p in range(4)]
        + [(50, loaded(7, 2)), (60, STARTING), (70, loaded(7, 3))],
        b2=[(10, STARTING), (50, loaded(8, 0)), (51, loaded(7, 1))],
    )
    judge = replace(JUDGE, epochs=epochs)
    found = [
        (group, row["broker"], row["line"], row["subject"])
        for group, lines in sorted(groups.items())
        for table, row in check_rows(judge, group, lines)
        if table == "member_lines"
    ]
    assert found == [
        ("g1", "2", 3, "__consumer_offsets-1 in epoch 7"),
        ("g2", "1", 10, "__consumer_offsets-2 in epoch 7"),
    ]
