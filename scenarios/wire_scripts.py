"""Wire scripts: groups whose members send requests that real clients rarely send.

This module lists what each script needs of the brokers, so that an experiment which cannot run it
is refused when it is read. `loadtest.wire_scripts` runs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

TOPIC = "orders"
DELAY, SIZE = "group.initial.rebalance.delay.ms", "group.max.size"
SHORTEST = "group.min.session.timeout.ms"
DEFAULTS = {DELAY: 3_000, SIZE: 2_147_483_647, SHORTEST: 6_000}
"""Broker settings that wire scripts depend on, with Kafka's defaults."""
MOST_MEMBERS = 5
"""The most members that a script's group has at a time, including those about to be replaced."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a wire script needs of its experiment.

    `session_ms` is the shortest session timeout that its members ask for, `brokers` the least
    number of brokers, `settings` the exact values of broker settings. `awaits` is the fault that
    it waits for at the coordinator of its group; `grows` asks for one that adds partitions to
    `TOPIC`. Brokers before the release `since` cannot run it to its end.
    """

    session_ms: int = 3_000
    brokers: int = 1
    settings: Mapping[str, int] = field(default_factory=dict)
    awaits: Literal["", "broker.kill", "coordinator.move"] = ""
    grows: bool = False
    since: str = "2.4.0"


NEEDS: Mapping[str, Needs] = {
    "fencing": Needs(),
    "returning": Needs(),
    "removal": Needs(),
    "sessions": Needs(session_ms=2_000),
    "absent": Needs(session_ms=2_000),
    "leading": Needs(),
    "pending": Needs(session_ms=2_000),
    "full": Needs(settings={SIZE: 5}),
    "forming": Needs(settings={DELAY: 500}),
    "silent": Needs(),
    "mixed": Needs(session_ms=2_000),
    "elsewhere": Needs(brokers=2),
    "while_empty": Needs(session_ms=120_000),
    "while_preparing": Needs(session_ms=120_000),
    "while_completing": Needs(session_ms=120_000, since="2.5.0"),
    "while_stable": Needs(session_ms=120_000),
    "stale_sync": Needs(session_ms=10_000),
    "resubscribed": Needs(session_ms=10_000),
    "retimed": Needs(session_ms=2_000),
    "replaced": Needs(session_ms=10_000),
    "missed": Needs(session_ms=20_000),
    "unstored": Needs(session_ms=60_000, awaits="broker.kill"),
    "locked_out": Needs(session_ms=6_000, awaits="broker.kill"),
    "removed_in_sync": Needs(session_ms=20_000),
    "given_up": Needs(session_ms=60_000, awaits="coordinator.move", since="4.0.0"),
    "leader_returns": Needs(session_ms=120_000, grows=True),
    "leader_misses": Needs(session_ms=120_000, grows=True),
    "old_leader_returns": Needs(session_ms=120_000, grows=True),
}
"""What each script needs, by its name."""

if TYPE_CHECKING:
    WireScript = str
else:
    WireScript = Literal[tuple(NEEDS)]
"""The name of a script."""
