"""A group's record in `__consumer_offsets` (GroupMetadataValue v3), as far as rules need it."""

from dataclasses import dataclass

from reference_coordinator.state import Member


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group as stored: what a new coordinator knows after loading.

    Members keep only the metadata of the selected protocol, and no parked requests.
    """

    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: tuple[Member, ...]
