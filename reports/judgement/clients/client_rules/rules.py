"""What rules share: how one is declared and worded once broken, and how long clients are given."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafka_protocol.errors import Error, name_of
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_rules.lives import Life, Sent

AFTER_MS = 100.0
"""How long after an answer a request may still arrive that was sent before it."""
NOTICED_MS = 1_000.0
"""How long a client may take until all its threads know of an answer."""
SHOWN = 3
"""How many requests of a kind a finding names."""
OUT = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID)
"""The answers that say to a client that it is no member any more."""
IN_GENERATION = ("HEARTBEAT", "SYNC_GROUP", "OFFSET_COMMIT")
"""The requests of a member that has joined."""


class Broken(NamedTuple):
    """A rule that a client breaks: when, how, and the requests that show it.

    `by_order` is set where their order alone shows it, however slow the machine was: a client
    sends no second JoinGroup, say, before it has the answer to the first.
    """

    at_ms: float
    what: str
    shown: Sequence[ObservedRequest]
    by_order: bool = False


Breaks = Callable[[Life], Iterator[Broken]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What clients owe: what it `demands`, in words, its source, and what finds where it is broken.

    What rests `on_time` is about what a client does in time, or once it can be expected to know an
    answer. `breaks` finds nothing where another module judges.
    """

    name: str
    demands: str
    source: str
    on_time: bool = False
    breaks: Breaks = lambda _: iter(())


def rule(source: str, *, on_time: bool = False) -> Callable[[Breaks], Rule]:
    """Declare a rule by what finds where it is broken; its docstring says what the rule demands."""
    return lambda breaks: Rule(
        breaks.__name__.replace("_", "-"),
        " ".join((breaks.__doc__ or "").split()),
        source,
        on_time,
        breaks,
    )


def error_of(one: Sent) -> str:
    """Return the name of the error that a request was answered."""
    return name_of(one.error or 0)


def times(sent: Iterable[Sent]) -> str:
    """Return how often something was sent, in words."""
    count = sum(one.count for one in sent)
    return f"{count} times" if count > 1 else "once"
