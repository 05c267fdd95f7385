"""A request that goes through the tap, and its answer."""

import time
from dataclasses import dataclass, field

from kafka_protocol.frames import NAMES, Head


@dataclass(slots=True, eq=False)
class Exchange:
    """A request of a connection to a broker, and what has become of it and its answer so far.

    Times are of the monotonic clock. `request` is its frame where that is evidence, else None.
    `instances` are the instance ids that the connection's JoinGroups named. `decided` says which
    rules hit it. A `copy` is the second of a request that a rule doubled: no client gets its
    answer. It `waited` if a rule held it up, or what was before it on the connection. Where the
    client gets an `error` (its code) instead, `true_answer` is the broker's frame.
    """

    head: Head
    broker: int
    instances: frozenset[str]
    request: bytes | None = None
    received_ns: int = field(default_factory=time.monotonic_ns)
    forwarded_ns: int | None = None
    answered_ns: int | None = None
    decided: dict[str, bool] = field(default_factory=dict)
    copy: bool = False
    waited: bool = False
    error: int | None = None
    true_answer: bytes | None = None

    @property
    def rules(self) -> list[str]:
        """The ids of the rules that hit it."""
        return [rule for rule, hit in self.decided.items() if hit]

    @property
    def api(self) -> str:
        """The API's name."""
        return NAMES.get(self.head.api_key, str(self.head.api_key))
