"""Which release the brokers of a cluster have, as far as they tell it."""

from collections.abc import Iterable
from dataclasses import dataclass

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import LINES, profile_for
from scenarios.releases import default_coordinator

Line = tuple[int, int]
METADATA_LEVELS: dict[Line, int] = {(4, 3): 30, (4, 4): 33}
"""The highest `metadata.version` that brokers of a line take (KIP-778), from the newest line on
that their APIs tell to the newest that is known. Source: MetadataVersion.java, LATEST_PRODUCTION of
4.3.0 and 4.4.0."""
MOST_PATCHES = 99


@dataclass(frozen=True, slots=True)
class Offered:
    """The lines that the brokers may be of, from `first` to `last`.

    `beyond` is set where they may be newer than any line that is known.
    """

    first: Line
    last: Line
    beyond: bool = False

    @classmethod
    def by(cls, apis: Line, metadata_level: int | None) -> "Offered":
        """Tell it from the line that the APIs show, and the highest `metadata.version`, if known.

        kafka-python takes brokers of every later line for those of the newest that it knows.
        """
        shown = min(METADATA_LEVELS)
        if apis < shown:
            return cls(apis, apis)
        if metadata_level is None:
            return cls(apis, max(METADATA_LEVELS), beyond=True)
        lines = [line for line, most in METADATA_LEVELS.items() if metadata_level <= most]
        line = max(apis, min(lines)) if lines else max(METADATA_LEVELS)
        return cls(line, line, beyond=not lines)

    @property
    def version(self) -> str:
        """The first release that it may be."""
        return f"{_name(self.first)}.0"

    @property
    def words(self) -> str:
        """The releases that it may be, for people."""
        if self.beyond or self.first != self.last:
            return f"{self.version} or a later release"
        return f"{self.version} or a later patch"

    def rules(self) -> set[Profile | None]:
        """Return the rules of every release that it may be."""
        kind = default_coordinator(self.version)
        return {
            profile_for(f"{line}.{patch}", kind)
            for line in LINES[kind]
            if self.first <= _numbers(line) <= self.last
            for patch in (0, MOST_PATCHES)
        }

    @property
    def is_certain(self) -> bool:
        """Whether all of them follow the same rules."""
        return not self.beyond and len(self.rules()) == 1


def offered(client: KafkaAdminClient, brokers: Iterable[int]) -> Offered:
    """Ask the brokers; the oldest counts. Raises KafkaError if one does not answer."""
    apis = min(client.get_broker_version_data(node).broker_version[:2] for node in brokers)
    return Offered.by(apis, metadata_level(client) if apis >= min(METADATA_LEVELS) else None)


def metadata_level(client: KafkaAdminClient) -> int | None:
    """Return the highest `metadata.version` that a broker takes; None if it tells none."""
    try:
        supported = client.describe_features().get("metadata.version", {}).get("supported")
    except KafkaError:
        return None
    return None if supported is None else int(supported[1])


def _name(line: Line) -> str:
    return ".".join(map(str, line))


def _numbers(line: str) -> Line:
    major, minor = map(int, line.split("."))
    return major, minor
