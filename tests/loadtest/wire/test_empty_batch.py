"""KAFKA-20845: a record larger than a batch, but not once it is compressed: a finding."""

from pathlib import Path

import pytest

from chaos.clusters.process import ProcessCluster
from kafka_protocol.errors import Error
from loadtest.wire import WireError
from loadtest.wire_scripts.known_defects import await_restart
from loadtest.wire_scripts.members import Group

pytestmark = [pytest.mark.cluster, pytest.mark.long]

BATCH_BYTES = 8_000
CONFIG = {
    "group.initial.rebalance.delay.ms": 500,
    "message.max.bytes": BATCH_BYTES,
    "offsets.topic.compression.codec": 1,  # GZIP
    "offsets.topic.num.partitions": 1,
}
WAITS_S = 10
"""Longer than the initial delay and the session of the only member together."""


@pytest.mark.parametrize(("kafka", "is_answered"), [("4.3.0", False), ("4.4.0", True)])
def test_the_first_join_of_a_group_whose_record_is_large(
    tmp_path: Path, kafka: str, is_answered: bool
) -> None:
    """docs/findings.md#kafka-20845: the empty batch fails, and with it the group is forgotten."""
    with ProcessCluster("empty-batch", tmp_path, version=kafka, brokers=1, config=CONFIG) as broker:
        for name in ("short", "g" * (BATCH_BYTES + 1_000)):
            group = Group(name, {1: broker.brokers[0].port}, session_ms=6_000)
            await_restart(group)
            member = group.static("a", client_id="a")
            try:
                error = member.ask(
                    "JOIN_GROUP", WAITS_S, groupId=name, sessionTimeoutMs=6_000,
                    rebalanceTimeoutMs=6_000, memberId="", groupInstanceId="a",
                    protocolType="consumer", reason=None,
                    protocols=[{"name": "range", "metadata": member.protocols[0][1]}],
                )["errorCode"]  # fmt: skip
            except WireError:
                error = None
            assert error == (Error.NONE if is_answered or name == "short" else None)
            group.close()
