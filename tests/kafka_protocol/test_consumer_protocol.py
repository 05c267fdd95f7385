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
WRITTEN = SUBSCRIPTION.encode()

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


@given(subscriptions, assignments, st.integers(0, 3))
def test_another_implementation_reads_the_same(subscription, assignment, version):
    """What a version lacks is lost, and nothing else."""
    written = subscription.encode(version)
    assert Subscription.decode(written) == Subscription(
        subscription.topics,
        subscription.user_data,
        subscription.owned if version >= 1 else (),
        subscription.generation if version >= 2 else -1,
        subscription.rack if version >= 3 else None,
    )
    read, size = _read("ConsumerProtocolSubscription", version, written)
    assert (int.from_bytes(written[:2]), size) == (version, len(written) - 2)
    assert (read.topics, read.user_data) == (subscription.topics, subscription.user_data)
    if version >= 1:
        assert _flat(read.owned_partitions) == list(subscription.owned)
    if version >= 2:
        assert read.generation_id == subscription.generation
    if version >= 3:
        assert read.rack_id == subscription.rack
    written = assignment.encode(version)
    assert Assignment.decode(written) == assignment
    read, size = _read("ConsumerProtocolAssignment", version, written)
    assert (int.from_bytes(written[:2]), size) == (version, len(written) - 2)
    assert _flat(read.assigned_partitions) == list(assignment.partitions)
    assert read.user_data == assignment.user_data


def test_partitions_are_written_by_topic():
    """In the order in which the topics come first, each once."""
    one, other, last = TopicPartition("ab", 1), TopicPartition("c", 0), TopicPartition("ab", 2)
    written = Assignment((one, other, last)).encode(1)
    assert Assignment.decode(written).partitions == (one, last, other)


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
