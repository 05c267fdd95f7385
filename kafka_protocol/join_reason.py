"""Why a member joins, in words that the coordinator acts by (KIP-423, never released).

The reason of KIP-800, which JoinGroup has from v8 on, is text for people.
"""

from enum import IntEnum


class JoinReason(IntEnum):
    """The reasons, by their names in the proposal; what is none of them counts as UNKNOWN."""

    UNKNOWN = 0
    RESTART = 1
    """Its process has started, or knows no more whether it is in the group."""
    TOPIC_METADATA_CHANGE = 2
    """It leads, and its topics have other partitions."""
    UPGRADE = 3
    """It asks for a rebalance."""

    @classmethod
    def _missing_(cls, _: object) -> "JoinReason":
        return cls.UNKNOWN
