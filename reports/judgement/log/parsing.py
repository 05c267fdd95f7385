"""Parsing: the text of one line in; its parts, its request or its coordinator line out.

Functions of one line each; what needs the neighbouring lines is in `broker_log`.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, NamedTuple

from kafka_protocol import request_log, tap_lines
from kafka_protocol.apis import CONFIGURE, LOGGED_APIS, OFFSET_FETCH
from kafka_protocol.bodies import BODIES, problem
from kafka_protocol.coordinator_lines import Grammar, LineParser
from kafka_protocol.log_line import DATED, NUMBERED, dated_ms
from kafka_protocol.request_log import PARTS_MS
from reports.judgement.log.log_places import Level
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import Skew
from reports.timing import ARRIVAL_ERROR_MS, HANDLING_DELAY_MS

INT, LONG = 1 << 31, 1 << 63
WHOLE_TEXT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode

Times = tuple[float | None, float | None, float | None, float | None, float | None]
"""When a request arrived, was dequeued, handled, at the latest so, and answered, in ms."""


class Parts(NamedTuple):
    """The parts of a line; serial number and nano clock are None where lines have none."""

    sn: int | None
    logged_ms: int | None
    nanos: int | None
    level: str
    body: str
    logger: str


NO_PARTS = Parts(None, None, None, "", "", "")
"""The parts of a line that has no form of the log."""


class LoggedRequest(NamedTuple):
    """A logged request and its response; what is missing or of a wrong type is None.

    An OffsetFetch of several groups (KIP-709), which no member sends, has no `group`.
    `request` and `response` are JSON. `times_ms` are its total time and the parts of that.
    `readable` if the line is complete and the total time is the sum of its parts.
    """

    group: str | None = None
    api: str | None = None
    api_version: int | None = None
    client_id: str | None = None
    correlation_id: int | None = None
    connection: str | None = None
    request: str | None = None
    response: str | None = None
    error_code: int | None = None
    times_ms: tuple[float, ...] | None = None
    readable: bool = False


UNREADABLE = LoggedRequest()

NEVER: Times = (None, None, None, None, None)


def times_on_wire(times_ms: Sequence[float] | None, logged_ms: float | None) -> Times:
    """Return the times of a request that the tap forwarded, and wrote down at `logged_ms`.

    Nothing tells when the broker acted on it before the tap had the answer.
    """
    if times_ms is None or logged_ms is None:
        return NEVER
    total, queue, _, _, answer_queue, sending = times_ms
    arrived, answered = logged_ms - total, logged_ms - answer_queue - sending
    forwarded = min(arrived + queue, answered)
    latest = min(answered, forwarded + 2 * HANDLING_DELAY_MS)
    return arrived, forwarded, forwarded, latest, answered


def times_of(times_ms: Sequence[float] | None, logged_ms: float | None) -> Times:
    """Return the times of a request whose line was written at `logged_ms`."""
    if times_ms is None or logged_ms is None:
        return NEVER
    total, queue, local, _, answer_queue, sending = times_ms
    arrived = logged_ms - total
    taken = arrived + queue
    answered = logged_ms - answer_queue - sending
    done = min(taken + local, answered)
    latest = min(answered, min(done, arrived + HANDLING_DELAY_MS) + HANDLING_DELAY_MS)
    return arrived, taken - ARRIVAL_ERROR_MS, (taken + done) / 2, latest, answered


_TYPED = re.compile(rb"(\d{1,18}) (\d{1,18}) (\d{1,18}) [!-~]+ DEBUG Completed request:(?=\{)")
_LOGGED = f" ({request_log.LOGGER})".encode()
_REPLACED = "\ufffd".encode()


@dataclass(slots=True)
class Parser:
    """Parses the lines of a release; `numbered` if they have serial numbers.

    Lines of groups whose names do not begin with `prefix` are irrelevant: on a cluster that others
    use, too, they are none of the run's.
    `on_wire` if the tap wrote them, whose lines are all about requests.
    `skews` are the times at which faults had set the clocks of brokers off.
    `span` is the time in which lines were written, by whatever clock, in ms. `lines` matches the
    coordinator's lines against the templates.
    """

    grammar: Grammar
    numbered: bool
    prefix: str = ""
    on_wire: bool = False
    skews: Sequence[Skew] = ()
    span: tuple[float, float] = (-inf, inf)
    _line: re.Pattern[str] = field(init=False)
    lines: LineParser = field(init=False)

    def __post_init__(self) -> None:
        self._line = re.compile(NUMBERED if self.numbered else DATED, re.ASCII)
        self.lines = LineParser(self.grammar)

    @property
    def folder(self) -> str:
        """The folder of a run in which the logs are."""
        return (Level.WIRE if self.on_wire else Level.REQUESTS).folder

    def split(self, text: str) -> Parts:
        """Split a line into its parts; one that is no text, or of another time, has none."""
        match = self._line.match(text)
        if match is None or "\0" in text or "\ufffd" in text:
            return NO_PARTS
        if self.numbered:
            sn, ms, nanos, level, body, logger = match.groups()
            parts = Parts(number(sn), number(ms), number(nanos), level, body, logger)
        else:
            date, level, body, logger = match.groups()
            parts = Parts(None, dated_ms(date), None, level, body, logger)
        at_ms = parts.logged_ms
        return parts if at_ms is None or self.span[0] <= at_ms <= self.span[1] else NO_PARTS

    def typed_request(self, line: bytes) -> tuple[int, int, int, LoggedRequest] | None:
        """Do the same as `split` and `parse_request`, faster; None for what Kafka writes not so.

        That is the line's serial number, both clocks, and its request.
        """
        match = _TYPED.match(line) if self.numbered and line.endswith(_LOGGED) else None
        if match is None or _REPLACED in line:
            return None
        sn, ms, nanos = map(int, match.groups())
        if not self.span[0] <= ms <= self.span[1]:
            return None
        known = request_log.typed(line[match.end() : -len(_LOGGED)])
        return None if known is None else (sn, ms, nanos, _of_typed(known))

    def is_of_coordinator(self, logger: str) -> bool:
        """Whether a logger writes the coordinator's lines, except loggers that are irrelevant."""
        grammar = self.grammar
        if self.on_wire:
            return False
        return logger.startswith(grammar.loggers) and logger not in grammar.irrelevant_loggers

    def is_foreign(self, group: str | None) -> bool:
        """Whether a group is none of the run's."""
        return bool(self.prefix) and group is not None and not group.startswith(self.prefix)


def parse_request(body: str) -> LoggedRequest:
    """Parse the body of a request's line: JSON, or text before 2.8."""
    known = request_log.typed_of(body)
    return parse_any(body) if known is None else _of_typed(known)


def _of_typed(known: request_log.Typed) -> LoggedRequest:
    """Return a request whose line is as Kafka writes it."""
    completed, request, response, request_text, response_text = known
    header = completed.request_header
    api = header.request_api_key_name
    if api == OFFSET_FETCH and hasattr(request, "groups"):
        group = request.groups[0].groupId if len(request.groups) == 1 else None
    elif api == CONFIGURE:
        group = request.resources[0].resourceName if len(request.resources) == 1 else None
    else:
        group = request.groupId
    times = (
        completed.total_time_ms,
        completed.request_queue_time_ms,
        completed.local_time_ms,
        completed.remote_time_ms,
        completed.response_queue_time_ms,
        completed.send_time_ms,
    )
    return LoggedRequest(
        group,
        api,
        header.request_api_version,
        header.client_id,
        header.correlation_id,
        completed.connection,
        request_text,
        response_text,
        _int(getattr(response, "errorCode", None)),
        times,
        _add_up(times),
    )


def parse_unanswered(body: str) -> LoggedRequest | None:
    """Parse the line of a request that the tap saw no answer of; None if no broker was sent it.

    Its time until the tap forwarded it stands as that in a queue.
    """
    content = _content(body, lambda: json.loads(body.removeprefix(tap_lines.UNANSWERED)))
    tap = _object(content.get("tap"))
    if tap.get("forwarded") is False:
        return None
    total_ms: Any = content.get("totalTimeMs")
    held_ms: Any = tap.get("requestHeldMs", 0.0)
    found = _of_content(content, (total_ms, held_ms, 0.0, 0.0, 0.0, 0.0), answered=False)
    whole = found.readable and tap.get("forwarded") is True
    return found if whole and isfinite(total_ms) and 0.0 <= held_ms <= total_ms else UNREADABLE


def parse_any(body: str) -> LoggedRequest:
    """Parse the body of a request's line in whatever form, slowly."""
    content = _content(body, lambda: request_log.parsed(body))
    times_ms = [content.get(name) for name in ("totalTimeMs", *PARTS_MS)]
    return _of_content(content, times_ms, answered=True)


def _content(body: str, parse: Callable[[], Any]) -> Json:
    """Return the content of a line, as JSON; empty if it has none."""
    try:
        content = parse()
        if "\\u" in body:
            WHOLE_TEXT(content).encode()  # a lone surrogate cannot be encoded
    except (ValueError, RecursionError):
        return {}
    return _object(content)


def _of_content(content: Json, times_ms: Sequence[Any], *, answered: bool) -> LoggedRequest:
    """Return a request of which anything may be missing, or of a wrong type."""
    header, request, response = (
        _object(content.get(name)) for name in ("requestHeader", "request", "response")
    )
    try:
        timed = all(type(one) in (int, float) for one in times_ms)
        times = tuple(map(float, times_ms)) if timed else None
    except OverflowError:
        times = None
    # only a request that may name several has a list of them (KIP-709, IncrementalAlterConfigs)
    groups: Any = request.get("groups", request.get("resources"))
    batched = isinstance(groups, list)
    named = groups[0] if batched and len(groups) == 1 else request
    group = _text(named.get("groupId", named.get("resourceName"))) if _object(named) else None
    whole: Json = {
        "api": _text(header.get("requestApiKeyName")),
        "api_version": _int(header.get("requestApiVersion")),
        "client_id": _text(header.get("clientId")),
        "correlation_id": _int(header.get("correlationId")),
        "connection": _text(content.get("connection")),
    }
    result = response.get("topics") if (code := response.get("errorCode")) is None else code
    if batched:
        result = response.get("groups", response.get("responses"))
    readable = (
        None not in whole.values()
        and (group is not None or batched)
        and whole["api"] in (*LOGGED_APIS, CONFIGURE)
        and times is not None
        and (not answered or (result is not None and _add_up(times)))
        and _has_all(whole, request, response if answered else None)
    )
    return LoggedRequest(
        group,
        **whole,
        request=WHOLE_TEXT(request) if request else None,
        response=WHOLE_TEXT(response) if response else None,
        error_code=_int(code),
        times_ms=times,
        readable=readable,
    )


def _add_up(times_ms: tuple[float, ...]) -> bool:
    """Whether a request's total time is the sum of its parts.

    Another thread may complete the response before the handling thread is done. The local time is
    too long then, and the negative remote time is printed as 0
    (`RequestChannel.updateRequestMetrics`, 2.4 to 4.3).
    """
    total, _, local, remote, *_ = times_ms
    too_many = sum(times_ms[1:], 0.0) - total
    return -1.0 < too_many < 1.0 + (0.0 if remote else local)


def _has_all(header: Json, request: Json, response: Json | None) -> bool:
    """Whether both bodies have the fields of their version that the oracle reads."""
    api = header["api"]
    return api not in BODIES or not problem(api, header["api_version"], request, response)


def number(text: str | None, limit: int = LONG) -> int | None:
    """Return a text as a number; None if it is none, or not within `limit`."""
    if not text:
        return None
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -limit <= value < limit else None


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _int(value: Any) -> int | None:
    return value if type(value) is int and -INT <= value < INT else None
