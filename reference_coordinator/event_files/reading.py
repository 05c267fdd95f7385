"""Event files (`groupquake-events/1`): what clients sent and received, in JSON lines.

A file holds sequences, each of one group: a header, a line a request in the order they were sent,
and a line that ends it. The times are the clients': the coordinator acted at any time between.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from kafka_protocol.bodies import BODIES, problems
from reference_coordinator.classic.profiles import Settings
from reference_coordinator.event_files.broker_evidence import (
    LAST_MS,
    NOTHING,
    Logged,
    as_logged,
    read_logged,
)
from reference_coordinator.replay.evidence import Evidence, ObservedRequest, Outage

FORMAT = "groupquake-events/1"
COORDINATORS = ("java", "scala")
MAX_SETTING = 2**31 - 1

Line = dict[str, Any]


class EventFileError(Exception):
    """A line that is not of the form; `str()` says file, line and what is wrong with it."""


class _Malformed(Exception):  # noqa: N818 (it becomes an EventFileError, which knows the place)
    """What is wrong with a line."""


@dataclass(slots=True)
class EventSequence:
    """One sequence, as far as it was read. `line` is that of its header.

    `places` are the line numbers of its requests by their ids, `texts` all its lines as they stand.
    """

    line: int
    number: int
    kafka: str
    coordinator: str
    group: str
    settings: Settings
    outages: tuple[Outage, ...] = ()
    logged: Logged = NOTHING
    requests: list[ObservedRequest] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    last_ms: float = 0.0

    @property
    def evidence(self) -> Evidence:
        """The sequence as the oracle takes it: with hints and loads if the file has them."""
        logged = (self.logged.hints, self.logged.epoch_events, self.logged.stalls)
        of_changes = self.logged.loading, self.logged.reconnects_ms, self.logged.partings
        return Evidence(self.group, tuple(self.requests), *logged, self.outages, *of_changes)

    def text(self, request: str) -> str:
        """Return a request's line."""
        return self.texts[self.places[request] - self.line]


def read(lines: Iterable[str], name: str) -> Iterator[EventSequence]:
    """Read a file's sequences, one after the other; `name` is the file's, for errors.

    Raises EventFileError at the first line that is not of the form.
    """
    sequence: EventSequence | None = None
    number = 0
    for number, text in enumerate(lines, 1):
        try:
            line = _parsed(text)
            if sequence is None or "format" in line:
                _check_between(line, sequence)
                sequence = _begun(line, number)
            elif "end" in line:
                _check_end(line, sequence)
            else:
                _add(sequence, line, number)
            sequence.texts.append(text.rstrip("\r\n"))
        except _Malformed as problem:
            raise EventFileError(f"{name}:{number}: {problem}") from problem
        if "end" in line and "format" not in line:
            yield sequence
            sequence = None
    if number == 0:
        raise EventFileError(f"{name}:1: the file is empty")
    if sequence is not None:
        raise EventFileError(
            f"{name}:{number}: the file ends, and the sequence that begins at line {sequence.line}"
            ' has no end line, {"at_ms": …, "end": true}'
        )


def _parsed(text: str) -> Line:
    try:
        line = json.loads(text, parse_constant=_not_in_json)
        json.dumps(line, ensure_ascii=False).encode()  # half a character can be escaped, not shown
    except (ValueError, RecursionError) as error:
        raise _Malformed(f"no JSON: {error}") from error
    if not isinstance(line, dict):
        raise _Malformed("no JSON object")
    return line


def _not_in_json(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _check_between(line: Line, before: EventSequence | None) -> None:
    if before is not None:
        raise _Malformed(
            f"a header, and the sequence that begins at line {before.line} has no end line"
        )
    if "format" not in line:
        what = "an end" if "end" in line else "a request"
        raise _Malformed(f'{what} before a header, {{"format": "{FORMAT}", …}}')


def _begun(header: Line, number: int) -> EventSequence:
    """Read a header; other keys are ignored."""
    if header["format"] != FORMAT:
        raise _Malformed(f"format is {header['format']!r}; it must be {FORMAT!r}")
    coordinator = _text(header, "coordinator")
    if coordinator not in COORDINATORS:
        raise _Malformed(f"coordinator is {coordinator!r}; it is one of {', '.join(COORDINATORS)}")
    config = _of(header, "config", dict, "an object")
    try:
        settings = Settings.from_properties(config)
    except (TypeError, ValueError, OverflowError) as error:
        raise _Malformed(f"config: {error}") from error
    if not all(0 <= value <= MAX_SETTING for value in astuple(settings)):
        raise _Malformed(f"config: a setting of a group is a number from 0 to {MAX_SETTING}")
    return EventSequence(
        line=number,
        number=_of(header, "sequence", int, "a whole number"),
        kafka=_text(header, "kafka"),
        coordinator=coordinator,
        group=_text(header, "group"),
        settings=settings,
        outages=tuple(_outages(header)),
        logged=_logged(header),
    )


def _outages(header: Line) -> Iterator[Outage]:
    """Read when writes may have failed, if the header tells: pairs of ms, from and until."""
    for pair in _of({"outages": [], **header}, "outages", list, "a list of pairs [from, until]"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise _Malformed("outages is not a list of pairs [from, until]")
        from_ms, until_ms = (_time({"outages": at_ms}, "outages") for at_ms in pair)
        yield Outage(from_ms, until_ms)


def _logged(header: Line) -> Logged:
    """Read what brokers logged in addition, if the header has it."""
    try:
        return read_logged(header.get("logged", {}))
    except ValueError as error:
        raise _Malformed(str(error)) from error


def _check_end(line: Line, sequence: EventSequence) -> None:
    if line["end"] is not True:
        raise _Malformed("end is not true")
    answers = (seen.answered_ms for seen in sequence.requests if seen.response is not None)
    last_ms = max(answers, default=sequence.last_ms)
    if (at_ms := _time(line, "at_ms")) < max(last_ms, sequence.last_ms):
        raise _Malformed(f"the end at {at_ms:g} ms is before the last that happened")


def _add(sequence: EventSequence, line: Line, number: int) -> None:
    """Read a request, and its answer if it has one."""
    at_ms, id_ = _time(line, "at_ms"), _text(line, "id")
    if at_ms < sequence.last_ms:
        raise _Malformed(f"sent at {at_ms:g} ms, before the request above it")
    if id_ in sequence.places:
        raise _Malformed(f"id {id_!r} stands at line {sequence.places[id_]} already")
    api, version = _text(line, "api"), _of(line, "api_version", int, "a whole number")
    if api not in BODIES:
        raise _Malformed(f"the api {api!r} is none of {', '.join(BODIES)}")
    answered_ms, response = _answer(line, at_ms)
    request = _of(line, "request", dict, "an object")
    form = BODIES[api]
    for name, fields, body in (
        ("request", form.request, request),
        ("response", form.response, response),
    ):
        for problem in problems(fields, body, version) if body is not None else ():
            raise _Malformed(f"{name} of {api}: {problem}")
    if request[form.groups] not in (sequence.group, [sequence.group]):
        raise _Malformed(
            f"the request is about {request[form.groups]!r}; this is group {sequence.group!r}"
        )
    seen = ObservedRequest(
        id=id_,
        broker="",
        api=api,
        api_version=version,
        client_id=_text(line, "client_id"),
        connection=_text(line, "connection"),
        earliest_ms=at_ms,
        at_ms=at_ms,
        latest_ms=answered_ms,
        answered_ms=answered_ms,
        request=request,
        response=response,
        serial=number,
        client_host=_text(line, "client_host"),
    )
    if "logged" in line:
        try:
            seen = as_logged(seen, line["logged"])
        except ValueError as error:
            raise _Malformed(str(error)) from error
    sequence.requests.append(seen)
    sequence.places[id_], sequence.last_ms = number, at_ms


def _answer(line: Line, at_ms: float) -> tuple[float, Mapping[str, Any] | None]:
    """Read when an answer came, and which; never and none where none did."""
    if "response" not in line and "answered_at_ms" not in line:
        return float("inf"), None
    for one, other in (("response", "answered_at_ms"), ("answered_at_ms", "response")):
        if one not in line:
            raise _Malformed(f"{other} stands there, but no {one}")
    answered_ms = _time(line, "answered_at_ms")
    if answered_ms < at_ms:
        raise _Malformed(f"answered at {answered_ms:g} ms, before it was sent at {at_ms:g} ms")
    return answered_ms, _of(line, "response", dict, "an object")


def _of(line: Line, key: str, kind: type, called: str) -> Any:
    if key not in line:
        raise _Malformed(f"{key} is missing")
    if type(line[key]) is not kind:
        raise _Malformed(f"{key} is not {called}")
    return line[key]


def _text(line: Line, key: str) -> str:
    return str(_of(line, key, str, "a string"))


def _time(line: Line, key: str) -> float:
    if key not in line:
        raise _Malformed(f"{key} is missing")
    value = line[key]
    if type(value) not in (int, float):
        raise _Malformed(f"{key} is not a number of milliseconds")
    if not 0 <= value <= LAST_MS:
        raise _Malformed(f"{key} is {str(value)[:20]}; times are ms from 0 to {LAST_MS:g}")
    return float(value)
