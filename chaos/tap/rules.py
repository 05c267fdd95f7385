"""Faults on the wire: which requests and answers a rule holds, delays, drops or doubles."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from chaos.tap.exchange import Exchange

Way = Literal["to-broker", "to-client"]
Action = Literal["partition", "hold", "delay", "drop-answers", "duplicate", "answer-error"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault on the wire, for the requests that all its selectors fit; None fits any.

    | action | what happens |
    |---|---|
    | `partition` | nothing passes, not even the end of a connection; what waits passes afterwards |
    | `hold` | requests wait, and what follows them on the connection |
    | `delay` | everything takes `latency_ms` longer, give or take `jitter_ms`, in the same order |
    | `drop-answers` | the request arrives; the client never gets its answer |
    | `duplicate` | the request arrives twice; the client gets the first answer |
    | `answer-error` | the request arrives; the client gets an answer with `error` instead |

    `client_ids` and `instance_ids` select members: one fits if either does. After a dropped answer
    the connection ends, as clients take later answers for none (`then: close`), or stays open and
    silent until the client gives up. The first requests that fit pass, as many as `after` says;
    `count` limits how many of the others are hit, `probability` is their share, drawn from `seed`.
    """

    action: Action
    client_ids: tuple[str, ...] | None = None
    instance_ids: tuple[str, ...] = ()
    brokers: tuple[int, ...] | None = None
    apis: tuple[str, ...] | None = None
    way: Literal["both", "to-broker", "to-client"] = "both"
    latency_ms: float = 0.0
    jitter_ms: float = 0.0
    after: int = 0
    count: int | None = None
    probability: float = 1.0
    seed: int = 0
    then: Literal["close", "silence"] = "close"
    error: str = ""


@dataclass(slots=True)
class ActiveRule:
    """A rule that is in force, and how many requests it has hit."""

    id: str
    rule: Rule
    hits: int = 0
    _passed: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.rule.seed)

    def fits(self, exchange: Exchange) -> bool:
        """Tell whether a request is one of those that the rule selects."""
        rule = self.rule
        if rule.brokers is not None and exchange.broker not in rule.brokers:
            return False
        if rule.apis is not None and exchange.api not in rule.apis:
            return False
        return (
            rule.client_ids is None
            or exchange.head.client_id in rule.client_ids
            or not exchange.instances.isdisjoint(rule.instance_ids)
        )

    def hit(self, exchange: Exchange) -> bool:
        """Tell whether the rule hits a request, which is decided and counted once."""
        decided = exchange.decided.get(self.id)
        if decided is None:
            decided = exchange.decided[self.id] = self._decide(exchange)
            self.hits += decided
        return decided

    def _decide(self, exchange: Exchange) -> bool:
        rule = self.rule
        if not self.fits(exchange) or (rule.count is not None and self.hits >= rule.count):
            return False
        if self._passed < rule.after:
            self._passed += 1
            return False
        return rule.probability >= 1.0 or self._random.random() < rule.probability

    def latency_ns(self) -> int:
        """Draw how long a frame is delayed."""
        jitter_ms = self.rule.jitter_ms * (2 * self._random.random() - 1)
        return max(0, round((self.rule.latency_ms + jitter_ms) * 1e6))


class RuleTable:
    """The rules in force, in the order in which they were added."""

    def __init__(self) -> None:
        self._active: dict[str, ActiveRule] = {}

    def __bool__(self) -> bool:
        return bool(self._active)

    def add(self, name: str, rule: Rule) -> None:
        """Put a rule in force under an id that no other has."""
        self._active[name] = ActiveRule(name, rule)

    def remove(self, name: str) -> int:
        """End a rule and return how many requests it has hit; 0 if it is not in force."""
        active = self._active.pop(name, None)
        return 0 if active is None else active.hits

    @property
    def hits(self) -> dict[str, int]:
        """How many requests each rule in force has hit."""
        return {name: active.hits for name, active in self._active.items()}

    def _of(self, *actions: Action) -> Iterable[ActiveRule]:
        return (active for active in self._active.values() if active.rule.action in actions)

    def holding(self, exchange: Exchange, way: Way, *, end: bool = False) -> bool:
        """Tell whether a frame, or the end of a connection, has to wait."""
        for active in self._of("partition", "hold"):
            if active.rule.way not in ("both", way):
                continue
            if active.rule.action == "hold" and (end or way != "to-broker"):
                continue
            if active.hit(exchange):
                return True
        return False

    def latency_ns(self, exchange: Exchange, way: Way) -> int:
        """Return how long a frame is delayed."""
        total = 0
        for active in self._of("delay"):
            if active.rule.way in ("both", way) and active.hit(exchange):
                total += active.latency_ns()
        return total

    def hitting(self, action: Action, exchange: Exchange) -> Rule | None:
        """Return the first rule of an action that hits a request, and count the hit."""
        return next((one.rule for one in self._of(action) if one.hit(exchange)), None)
