"""What clients owe to the protocol: logged requests of a group in, findings about clients out.

The replay judges brokers; these rules judge clients, by what they sent and were answered. A finding
names the requests that show it. None of them changes the verdict on the brokers. Pure functions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_rules.lives import Life


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
