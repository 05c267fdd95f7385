"""The blobs of the consumer protocol, byte by byte."""

from base64 import b64decode
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader

from reference_coordinator.assignors import (
    Assignment,
    ConsumerProtocolError,
    Subscription,
    TopicPartition,
)
from reference_coordinator.assignors.sticky_data import (
    Claim,
    cooperative_claim,
    encode,
    sticky_claim,
)
from tests.reference_coordinator.assignors.leaders import sampled

SUBSCRIPTION = Subscription(
    topics=("ab", "c"),
    user_data=b"\x07",
    owned=(TopicPartition("ab", 1), TopicPartition("ab", 258), TopicPartition("c", 0)),
    generation=5,
    rack="r",
)
WRITTEN = (
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
versions = st.integers(0, 3)


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_is_written_as_kafka_does(version):
    whole = bytes.fromhex(WRITTEN)
    written = version.to_bytes(2, "big") + whole[2 : ENDS[version]]
    assert SUBSCRIPTION.encode(version) == written
    assert Subscription.decode(written) == Subscription(
        SUBSCRIPTION.topics,
        SUBSCRIPTION.user_data,
        SUBSCRIPTION.owned if version >= 1 else (),
        SUBSCRIPTION.generation if version >= 2 else -1,
        SUBSCRIPTION.rack if version >= 3 else None,
    )


def test_an_assignment_is_written_as_kafka_does():
    both = Assignment((TopicPartition("ab", 1), TopicPartition("c", 0), TopicPartition("ab", 2)))
    written = bytes.fromhex(
        "0001 00000002 0002 6162 00000002 00000001 00000002 0001 63 00000001 00000000 ffffffff"
    )
    assert both.encode(1) == written
    assert sorted(Assignment.decode(written).partitions) == sorted(both.partitions)


@given(subscriptions, versions)
def test_another_implementation_reads_the_same_subscription(subscription, version):
    read, size = _read("ConsumerProtocolSubscription", version, subscription.encode(version))
    assert size == len(subscription.encode(version)) - 2
    assert read.topics == subscription.topics
    assert read.user_data == subscription.user_data
    if version >= 1:
        assert _flat(read.owned_partitions) == list(subscription.owned)
    if version >= 2:
        assert read.generation_id == subscription.generation
    if version >= 3:
        assert read.rack_id == subscription.rack


@given(assignments, versions)
def test_another_implementation_reads_the_same_assignment(assignment, version):
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


@given(subscriptions, assignments)
def test_encoded_values_decode_to_the_same(subscription, assignment):
    assert Subscription.decode(subscription.encode()) == subscription
    assert Assignment.decode(assignment.encode()) == assignment


def test_blobs_of_clients_decode_and_encode_to_the_same():
    blobs = 0
    for led in sampled():
        for _, _, text in led.received:
            blob = b64decode(text)
            assert Subscription.decode(blob).encode(blob[1]) == blob
            blobs += 1
        for text in led.sent.values():
            blob = b64decode(text)
            assert Assignment.decode(blob).encode(blob[1]) == blob
    assert blobs > 400


def test_a_newer_version_is_read_as_the_newest_known():
    newer = b"\0\x09" + bytes.fromhex(WRITTEN)[2:] + b"more"
    assert Subscription.decode(newer) == SUBSCRIPTION
    assert Assignment.decode(b"\0\x09\0\0\0\0\0\0\0\0more") == Assignment((), b"")


@pytest.mark.parametrize("end", range(56))
def test_a_blob_cut_short_is_refused(end):
    with pytest.raises(ConsumerProtocolError):
        Subscription.decode(bytes.fromhex(WRITTEN)[:end])


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


@given(partitions, st.integers(-1, 99))
def test_a_sticky_member_claims_what_it_wrote(owned, generation):
    data = encode(owned, generation)
    assert sticky_claim(Subscription((), data)) == Claim(owned, generation)
    assert sticky_claim(Subscription((), data[:-4])) == Claim(owned)


def test_location_of_a_cooperative_member_s_generation():
    owned = (TopicPartition("a", 0),)
    five = (5).to_bytes(4, "big")
    for subscription, claim in (
        (Subscription((), five, owned, 7), Claim(owned, 7)),
        (Subscription((), five, owned), Claim(owned, 5)),
        (Subscription((), b"\0", owned), Claim(owned, -1)),
        (Subscription((), None, owned), Claim(owned)),
    ):
        assert cooperative_claim(subscription) == claim
