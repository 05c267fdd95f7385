"""Who coordinates a group, and since when: what the brokers' own lines say of it."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from reports import timeline
from reports.grammar import JAVA
from reports.ingest import read_coordinator, read_envelopes
from tests.recorded.logs import RECORDINGS

pytestmark = pytest.mark.spark

RUNTIME = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"
SERVICE = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
STARTING = f"Starting up. ({SERVICE})"
Told = tuple[int, str]
Read = Callable[..., tuple[DataFrame, DataFrame]]


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


@pytest.fixture
def read(spark: SparkSession) -> Read:
    """Return what reads lines, given by broker as (ms, text): all of them, the coordinators'."""

    def run(**brokers: list[Told]) -> tuple[DataFrame, DataFrame]:
        rows = []
        for name, told in brokers.items():
            broker, sn = name[-1], 0
            for number, (at_ms, text) in enumerate(told, 1):
                sn = 1 if text == STARTING else sn + 1
                whose = f"id={broker}{' ' if text.startswith('topic=') else '] '}"
                line = f"{sn} {at_ms} {at_ms * 10**6} t INFO [GroupCoordinator {whose}{text}"
                rows.append((broker, f"brokers/{broker}/group.log", number, line))
        lines = spark.createDataFrame(rows, "broker STRING, file STRING, line LONG, text STRING")
        envelopes = read_envelopes(lines, JAVA, numbered=True)
        coordinator = read_coordinator(envelopes, JAVA)
        assert coordinator.where("template IS NULL").count() == 0
        return envelopes, coordinator

    return run


def servings(
    spark: SparkSession, envelopes: DataFrame, coordinator: DataFrame, *asked: str
) -> list[tuple[Any, ...]]:
    requests = spark.createDataFrame([(group,) for group in asked], "group STRING")
    found = timeline.servings(coordinator, requests, envelopes).collect()
    return sorted((row["group"], int(row["at_ms"]), row["broker"], row["kind"]) for row in found)


def test_a_load_that_a_broker_does_not_need_is_none(read: Read, spark: SparkSession) -> None:
    told = [(10, STARTING)]
    in_vain = {
        3: "The coordinator __consumer_offsets-3 is already active.",
        4: "The coordinator __consumer_offsets-4 is already loading metadata.",
        5: "Ignored loading metadata from __consumer_offsets-5 since current epoch 8 is larger "
        "than or equals to 7.",
    }
    for partition, why in in_vain.items():
        told += [(20, load(5, partition)), (30, load(7, partition)), (31, f"{why} ({RUNTIME})")]
        told += [(40, loaded(5, partition)), (50, empty(f"g{partition}", partition))]
    assert servings(spark, *read(b1=told)) == [
        (f"g{partition}", at_ms, "1", kind)
        for partition in in_vain
        for at_ms, kind in ((10, "started"), (20, "loading"), (40, "loaded"), (50, "ended"))
    ]


def test_each_life_of_a_broker_ends_with_its_last_line_or_as_it_shuts_down(
    read: Read, spark: SparkSession
) -> None:
    down = [(90, f"Shutting down. ({SERVICE})"), (99, f"Shutdown complete. ({SERVICE})")]
    envelopes, coordinator = read(b1=[(10, STARTING), (20, empty("g")), (80, STARTING), *down])
    assert servings(spark, envelopes, coordinator) == [
        ("g", 10, "1", "started"),
        ("g", 20, "1", "ended"),
        ("g", 80, "1", "started"),
        ("g", 90, "1", "ended"),
    ]


def test_a_group_of_which_no_line_tells_its_partition_is_where_kafka_puts_it(
    read: Read, spark: SparkSession
) -> None:
    partitions = range(6)
    told = [(10 + partition, loaded(0, partition)) for partition in partitions]
    envelopes, coordinator = read(b1=[(5, STARTING), *told])
    placed = RECORDINGS["kafka-4.3.0"].partitions
    assert len(set(placed.values())) > 3
    found = servings(spark, envelopes, coordinator, *placed)
    loads = {group: at_ms - 10 for group, at_ms, _, kind in found if kind == "loaded"}
    assert loads == {group: int(partition) for group, partition in placed.items()}


def test_an_epoch_is_loaded_by_one_broker_and_once_in_its_life(read: Read) -> None:
    _, coordinator = read(
        b1=[(10, STARTING)]
        + [(30 + p, loaded(7, p)) for p in range(4)]
        + [(40 + p, empty(f"g{p}", p)) for p in range(4)]
        + [(50, loaded(7, 2)), (60, STARTING), (70, loaded(7, 3))],
        b2=[(10, STARTING), (50, loaded(8, 0)), (51, loaded(7, 1))],
    )
    found = timeline.repeated_loads(coordinator).orderBy("group").collect()
    assert [(row["group"], row["broker"], row["line"], row["subject"]) for row in found] == [
        ("g1", "2", 3, "__consumer_offsets-1 in epoch 7"),
        ("g2", "1", 10, "__consumer_offsets-2 in epoch 7"),
    ]
