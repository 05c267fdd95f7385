"""The consumer protocol: what members and leaders write into the blobs that a coordinator carries.

A subscription travels in JoinGroup, an assignment in SyncGroup. Each begins with its version in two
bytes; a newer version than is known here reads as the newest known, as Kafka's clients do it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from struct import pack, unpack_from
from typing import NamedTuple

NEWEST = 3
"""Of both blobs. 1 came with 2.4 (KIP-429), 2 with 3.4 (KAFKA-13715), 3 with 3.5 (KIP-881)."""


class ConsumerProtocolError(Exception):
    """A blob that is not of the consumer protocol; `str()` says what is wrong with it."""


class TopicPartition(NamedTuple):
    """One partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants and has. `owned` is from version 1 on, `generation` 2, `rack` 3.

    `generation` is the one in which it got what it owns; -1 if there was none.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None

    def encode(self, version: int = NEWEST) -> bytes:
        """Write the blob. What a version does not have is left out."""
        blob = pack(">hi", version, len(self.topics)) + b"".join(map(_string, self.topics))
        blob += _bytes(self.user_data)
        if version >= 1:
            blob += write_partitions(self.owned)
        if version >= 2:
            blob += pack(">i", self.generation)
        if version >= 3:
            blob += _string(self.rack)
        return blob

    @classmethod
    def decode(cls, blob: bytes) -> "Subscription":
        """Read a blob. Raises ConsumerProtocolError."""
        reader = Reader(blob)
        version = reader.version()
        return cls(
            topics=tuple(reader.string() for _ in range(reader.count())),
            user_data=reader.bytes_(),
            owned=reader.partitions() if version >= 1 else (),
            generation=reader.int32() if version >= 2 else -1,
            rack=reader.nullable_string() if version >= 3 else None,
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member gets."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None

    def encode(self, version: int = NEWEST) -> bytes:
        """Write the blob."""
        return pack(">h", version) + write_partitions(self.partitions) + _bytes(self.user_data)

    @classmethod
    def decode(cls, blob: bytes) -> "Assignment":
        """Read a blob. Raises ConsumerProtocolError."""
        reader = Reader(blob)
        reader.version()
        return cls(reader.partitions(), reader.bytes_())


def write_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Write partitions topic by topic, both in the order in which they come."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return pack(">i", len(by_topic)) + b"".join(
        _string(topic) + pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in by_topic.items()
    )


def _string(text: str | None) -> bytes:
    data = None if text is None else text.encode()
    return pack(">h", -1) if data is None else pack(">h", len(data)) + data


def _bytes(data: bytes | None) -> bytes:
    return pack(">i", -1) if data is None else pack(">i", len(data)) + data


@dataclass(slots=True)
class Reader:
    """Reads a blob from front to back. Every read raises ConsumerProtocolError if it cannot."""

    blob: bytes
    at: int = 0

    def _take(self, size: int, what: str) -> bytes:
        end = self.at + size
        if not 0 <= size <= len(self.blob) - self.at:
            raise ConsumerProtocolError(
                f"{what} of {size} bytes at byte {self.at}, and the blob has {len(self.blob)}"
            )
        taken, self.at = self.blob[self.at : end], end
        return taken

    def _int16(self) -> int:
        return int(unpack_from(">h", self._take(2, "a number"))[0])

    def int32(self) -> int:
        """Read a number."""
        return int(unpack_from(">i", self._take(4, "a number"))[0])

    def version(self) -> int:
        """Read the version that a blob begins with."""
        version = self._int16()
        if version < 0:
            raise ConsumerProtocolError(f"version {version}; versions begin at 0")
        return version

    def count(self) -> int:
        """Read how many things follow."""
        count = self.int32()
        if not 0 <= count <= len(self.blob) - self.at:
            raise ConsumerProtocolError(f"a list of {count} at byte {self.at - 4}")
        return count

    def nullable_string(self) -> str | None:
        """Read a string, or that there is none."""
        size = self._int16()
        if size == -1:
            return None
        try:
            return self._take(size, "a string").decode()
        except UnicodeDecodeError as error:
            raise ConsumerProtocolError(f"a string before byte {self.at}: {error}") from error

    def string(self) -> str:
        """Read a string."""
        text = self.nullable_string()
        if text is None:
            raise ConsumerProtocolError(f"no string where one must be, before byte {self.at}")
        return text

    def bytes_(self) -> bytes | None:
        """Read bytes, or that there are none."""
        size = self.int32()
        return None if size == -1 else self._take(size, "bytes")

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Read partitions, topic by topic."""
        read: list[TopicPartition] = []
        for _ in range(self.count()):
            topic = self.string()
            read += [TopicPartition(topic, self.int32()) for _ in range(self.count())]
        return tuple(read)
