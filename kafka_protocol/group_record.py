"""How large a group's record is in `__consumer_offsets`, beside the largest that a broker takes.

A coordinator writes a whole group as one record: GroupMetadataKey 2 and GroupMetadataValue 3
(since 2.3, KIP-345), alone in a record batch of format 2 if it is large. The broker compares the
batch with the topic's `max.message.bytes`, which is the broker's `message.max.bytes` by default.

Source: `clients/src/main/resources/common/message` and `group-coordinator/src/main/resources` of
Kafka for the schemas; KIP-98 for the format of batches.
"""

from base64 import b64decode
from collections.abc import Iterable
from typing import NamedTuple

from kafka_protocol.bodies import LENGTH

LIMIT_PROPERTY = "message.max.bytes"
DEFAULT_LIMIT_BYTES = 1_048_588
"""1 MiB and the 12 bytes of a batch's offset and length."""
_BATCH_HEADER = 61
_INT16, _INT32, _INT64 = 2, 4, 8


class StoredMember(NamedTuple):
    """The fields of a member in the record; `subscription` and `assignment` as base64."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    subscription: str
    assignment: str


def host_in(connection: str | None) -> str:
    """Return the client's host, as the record has it, in a broker's name for a connection.

    That is `<local host>:<port>-<remote host>:<port>-<numbers>`; of another name, or of none, it is empty.
    """
    parts = (connection or "").split("-")
    host = parts[1].rpartition(":")[0] if len(parts) > 2 else ""
    return f"/{host}" if host else ""


def batch_bytes(
    group: str,
    protocol_type: str | None,
    protocol: str | None,
    leader: str | None,
    members: Iterable[StoredMember],
) -> int:
    """Return how many bytes the batch has that stores a group, and nothing else."""
    key = _INT16 + _string(group)
    value = (
        _INT16  # the version
        + _string(protocol_type)
        + _INT32  # the generation
        + _string(protocol)
        + _string(leader)
        + _INT64  # currentStateTimestamp
        + _INT32  # how many members
        + sum(map(_member, members))
    )
    attributes, no_headers = 1, 1
    times_and_offset = 2  # both are 0 in a batch of one record
    record = attributes + times_and_offset + _varint(key) + key + _varint(value) + value
    record += no_headers
    return _BATCH_HEADER + _varint(record) + record


def _member(member: StoredMember) -> int:
    return (
        _string(member.member_id)
        + _string(member.group_instance_id)
        + _string(member.client_id)
        + _string(member.client_host)
        + _INT32 * 2  # rebalance timeout and session timeout
        + _bytes(member.subscription)
        + _bytes(member.assignment)
    )


def _string(text: str | None) -> int:
    return _INT16 + len((text or "").encode())


def _bytes(text: str) -> int:
    if LENGTH.fullmatch(text):  # as logs before 2.8 have it
        return _INT32 + int(text[1:].split(maxsplit=1)[0])
    return _INT32 + len(b64decode(text))


def _varint(number: int) -> int:
    """Return the length of a positive number as a varint (zigzag, 7 bits a byte)."""
    return max(1, -(-(2 * number).bit_length() // 7))
