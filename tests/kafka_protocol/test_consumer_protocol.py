"""The blobs of the consumer protocol, byte by byte."""

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader

from kafka_protocol.consumer_protocol import (
    Assignment,
    ConsumerProtocolError,
    Subscription,
    TopicPartition,
)

SUBSCRIPTION = Subscription(
    topics=("ab", "c"),
    user_data=b"\x07",
    owned=(TopicPartition("ab", 1), TopicPartition("ab", 258), TopicPartition("c", 0)),
    generation=5,
    rack="r",
)
WRITTEN = bytes.fromhex(
    "0003 00000002 0002 6162 0001 63 00000001 07"
    "00000002 0002 6162 00000002 00000001 00000102 0001 63 00000001 00000000"
    "00000005 0001 72"
)
ENDS = {0: 18, 1: 49, 2: 53, 3: 56}
"""Where each version ends."""

names = st.text(min_size=1, max_size=8)
partitions = st.lists(st.builds(TopicPartition, names, st.integers(0, 2**31 - 1)), unique=True).map(
    lambda drawn: tuple(sorted(drawn))
)
user_data = st.none() | st.binary(max_size=8)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(names, max_size=4).map(tuple),
    user_data=user_data,
    owned=partitions,
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | names,
)
assignments = st.builds(Assignment, partitions, user_data)


def test_blobs_are_written_as_kafka_does():
    for version, end in ENDS.items():
        written = version.to_bytes(2, "big") + WRITTEN[2:end]
        assert SUBSCRIPTION.encode(version) == written
        assert Subscription.decode(written) == Subscription(
            SUBSCRIPTION.topics,
            SUBSCRIPTION.user_data,
            SUBSCRIPTION.owned if version >= 1 else (),
            SUBSCRIPTION.generation if version >= 2 else -1,
            SUBSCRIPTION.rack if version >= 3 else None,
        )
    both = Assignment((TopicPartition("ab", 1), TopicPartition("c", 0), TopicPartition("ab", 2)))
    written = bytes.fromhex(
        "0001 00000002 0002 6162 00000002 00000001 00000002 0001 63 00000001 00000000 ffffffff"
    )
    assert both.encode(1) == written
    assert sorted(Assignment.decode(written).partitions) == sorted(both.partitions)


@given(subscriptions, assignments, st.integers(0, 3))
def test_another_implementation_reads_the_same(subscription, assignment, version):
    assert Subscription.decode(subscription.encode()) == subscription
    assert Assignment.decode(assignment.encode()) == assignment
    written = subscription.encode(version)
    read, size = _read("ConsumerProtocolSubscription", version, written)
    assert size == len(written) - 2
    assert (read.topics, read.user_data) == (subscription.topics, subscription.user_data)
    if version >= 1:
        assert _flat(read.owned_partitions) == list(subscription.owned)
    if version >= 2:
        assert read.generation_id == subscription.generation
    if version >= 3:
        assert read.rack_id == subscription.rack
    read, _ = _read("ConsumerProtocolAssignment", version, assignment.encode(version))
    assert _flat(read.assigned_partitions) == list(assignment.partitions)
    assert read.user_data == assignment.user_data


def _read(name, version, blob):
    """Let kio read a blob behind its version; return what it read and how much of it."""
    package = "consumer_protocol_" + name.removeprefix("ConsumerProtocol").lower()
    entity = getattr(import_module(f"kio.schema.{package}.v{version}.data"), name)
    return entity_reader(entity)(blob[2:], 0)


def _flat(topics):
    return [TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions]


def test_a_newer_version_is_read_as_the_newest_known():
    assert Subscription.decode(b"\0\x09" + WRITTEN[2:] + b"more") == SUBSCRIPTION
    assert Assignment.decode(b"\0\x09\0\0\0\0\0\0\0\0more") == Assignment((), b"")


def test_a_blob_cut_short_is_refused():
    for end in range(len(WRITTEN)):
        with pytest.raises(ConsumerProtocolError):
            Subscription.decode(WRITTEN[:end])


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("ffff", "version -1; versions begin at 0"),
        ("0000 7fffffff", "a list of 2147483647 at byte 2"),
        ("0000 ffffffff", "a list of -1 at byte 2"),
        ("0000 00000001 ffff", "no string where one must be, before byte 8"),
        ("0000 00000001 0001 ff", "a string before byte 9: 'utf-8' codec can't decode"),
        ("0000 00000000 fffffffe", "bytes of -2 bytes at byte 10, and the blob has 10"),
    ],
)
def test_a_blob_that_is_no_subscription_is_an_error(written, said):
    with pytest.raises(ConsumerProtocolError) as refused:
        Subscription.decode(bytes.fromhex(written))
    assert str(refused.value).startswith(said)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(blob):
    for kind in (Subscription, Assignment):
        try:
            kind.decode(blob)
        except ConsumerProtocolError:
            continue
