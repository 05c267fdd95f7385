"""Answers that the tap did not hand on at once as they came: rules held, dropped, changed them.

A broker's log has an answer when the broker sent it. Where a rule of the tap acted, the tap's line
says when the client got it, that it never did, or which error it got instead. Other answers were
delivered at once, and so was every answer of which the tap has no line: they are compared as ever.

A rule may send a request twice. Then a broker's log has it twice, with one number.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_protocol.log_line import NUMBERED
from kafka_protocol.request_log import COMPLETED
from kafka_protocol.tap_lines import UNANSWERED
from reference_coordinator.replay import ObservedRequest
from reports.judgement.run.journal import parse
from reports.timing import SAME_ANSWER_MS

COPY = "-copy"
"""The end of the name of a connection that stands for the second of a request sent twice."""
ACTED = '"tap":{'  # stands in the line of each request that the tap did not just pass on
_LINE = re.compile(NUMBERED)
_ENDS = re.compile(r"(.+:\d+-.+:\d+)(?:-\d+)+")

Key = tuple[str, str, int]  # client, API and correlation id


class Delivery(NamedTuple):
    """One answer: the ends of its connection, when it came from the broker, when the client got it.

    `at_ms` is None if it never did.
    """

    ends: str
    answered_ms: float
    at_ms: float | None
    is_copy: bool = False
    """Whether it answers the second of a request that was sent twice."""
    error: int | None = None
    """The error that the client was answered instead, if it was."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The answers that rules of the tap hit, by request."""

    by_request: Mapping[Key, tuple[Delivery, ...]] = field(default_factory=dict)

    def of(self, seen: ObservedRequest, earlier: int = 0) -> Delivery | None:
        """Return what the tap did to the answer to a logged request; None if nothing.

        `earlier` is how often that request was logged before: rules send some twice.
        """
        key = seen.client_id, seen.api, seen.serial
        found = self._about(key, seen.connection, seen.answered_ms)
        return found[min(earlier, len(found) - 1)] if found else None

    def copies(self, key: Key, connection: str, answered_ms: float) -> int:
        """Return how often the tap sent a request once more that a broker answered then."""
        return sum(one.is_copy for one in self._about(key, connection, answered_ms))

    def _about(self, key: Key, connection: str, answered_ms: float) -> list[Delivery]:
        if (known := self.by_request.get(key)) is None:
            return []
        ends = _ends(connection)
        same = [one for one in known if one.ends == ends]
        near = [one for one in known if abs(one.answered_ms - answered_ms) < SAME_ANSWER_MS]
        return sorted(same or near, key=lambda one: one.answered_ms)


NOTHING_HELD = Deliveries()


@dataclass(slots=True)
class InOrder:
    """Takes the requests of a log in order of time: those that rules sent twice are in it twice."""

    deliveries: Deliveries
    _logged: Counter[tuple[str, str, str, int]] = field(default_factory=Counter)

    def of(self, seen: ObservedRequest) -> Delivery | None:
        """Return what the tap did to the answer to the next request; None if nothing."""
        return self.deliveries.of(seen, self._earlier(seen)) if self.deliveries.by_request else None

    def is_copy(self, seen: ObservedRequest) -> bool:
        """Tell whether the next request is one that the tap sent, and not its client."""
        key = seen.client_id, seen.api, seen.serial
        return seen.connection.endswith(COPY) or bool(
            self.deliveries.copies(key, seen.connection, seen.answered_ms) and self._earlier(seen)
        )

    def _earlier(self, seen: ObservedRequest) -> int:
        """Count a request; return how often it was logged before."""
        named = seen.client_id, seen.connection, seen.api, seen.serial
        self._logged[named] += 1
        return self._logged[named] - 1


def read(lines: Iterable[str]) -> Deliveries:
    """Read the lines of the tap's logs; only those on which it acted count."""
    found: dict[Key, tuple[Delivery, ...]] = {}
    for line in lines:
        match = _LINE.match(line) if ACTED in line else None
        if match is not None and (answer := _answer(float(match[2]), match[5])) is not None:
            key, delivery = answer
            found[key] = (*found.get(key, ()), delivery)
    return Deliveries(found)


def _answer(logged_ms: float, body: str) -> tuple[Key, Delivery] | None:
    """Read a line; None for one that was altered: then nothing is excused by it."""
    form = COMPLETED if body.startswith(COMPLETED) else UNANSWERED
    if not body.startswith(form):
        return None
    try:
        content = parse(body.removeprefix(form))
        header, connection, tap = (content[name] for name in ("requestHeader", "connection", "tap"))
        key = (header["clientId"], header["requestApiKeyName"], header["correlationId"])
        hash(key)
    except (ValueError, TypeError, KeyError):
        return None
    waited_ms = content.get("responseQueueTimeMs")
    is_timed = isinstance(waited_ms, float) or (waited_ms is None and form == UNANSWERED)
    if not (isinstance(connection, str) and isinstance(tap, dict) and is_timed):
        return None
    is_copy, is_answered = tap.get("copy") is True, waited_ms is not None
    if not (is_copy or is_answered):
        return None
    at_ms = logged_ms if is_answered and tap.get("delivered") is not False else None
    answered_ms, error = logged_ms - (waited_ms or 0.0), tap.get("errorCode")
    error = error if type(error) is int else None
    return key, Delivery(_ends(connection), answered_ms, at_ms, is_copy, error)


def _ends(connection: str) -> str:
    """Return both addresses of a connection's name, without the numbers behind them."""
    match = _ENDS.fullmatch(connection)
    return match[1] if match else connection
