"""How many partitions the topics of a group have: what its leader has to know."""

import time
from collections.abc import Callable, Collection, Mapping

from kafka_protocol.errors import BrokerError, Error, name_of
from loadtest.wire.member import WireMember

_UNCLEAR_S = 1.0
"""When a topic whose partitions cannot be seen is asked for again."""


class Topics:
    """The partition counts that a leader saw last, asked for again once they are old.

    `on_error` gets a text for each topic whose partitions cannot be seen, for want of a permission
    for example.
    """

    def __init__(self, max_age_s: float, on_error: Callable[[str], None]) -> None:
        self._max_age_s = max_age_s
        self._on_error = on_error
        self._wanted: set[str] = set()
        self._counts: dict[str, int] = {}
        self._ask_again_s = 0.0

    def counts_of(self, topics: Collection[str], member: WireMember) -> Mapping[str, int]:
        """Ask for the partitions of all topics of a group; those that do not exist are left out."""
        self._wanted = set(topics)
        self._ask(member)
        return self._counts

    def changed(self, member: WireMember) -> bool:
        """Whether what the leader knew has changed; asks only when its knowledge is old."""
        if not self._wanted or time.monotonic() < self._ask_again_s:
            return False
        before = self._counts
        self._ask(member)
        return before != self._counts

    def _ask(self, member: WireMember) -> None:
        answer = member.send(
            "METADATA",
            topics=[{"name": topic} for topic in sorted(self._wanted)],
            allowAutoTopicCreation=False,
            includeClusterAuthorizedOperations=False,
            includeTopicAuthorizedOperations=False,
        )
        found: dict[str, int] = {}
        age_s = self._max_age_s
        for topic in member.connection.wait(answer)["topics"]:
            name, error, count = topic["name"], int(topic["errorCode"]), len(topic["partitions"])
            if error == Error.NONE or count:
                found[name] = count
            elif error != BrokerError.UNKNOWN_TOPIC_OR_PARTITION:
                self._on_error(f"topic {name}: {name_of(error)}")
                age_s = min(age_s, _UNCLEAR_S)
                if name in self._counts:
                    found[name] = self._counts[name]
        self._counts, self._ask_again_s = found, time.monotonic() + age_s
