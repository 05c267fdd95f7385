"""Event files (`groupquake-events/1`): what clients sent and received, in JSON lines.

A file holds sequences, each of one group: a header, a line a request in the order they were sent,
and a line that ends it. The times are the clients': the coordinator acted at any time between.

What brokers logged beside the requests stands under `logged`, where it is known, from a run: in the
header the hints of coordinator lines, the loads and the stalls; with a request the broker and the
window in which it was acted on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field, fields, replace
from math import inf
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kafka_protocol.apis import CONFIGURE
from kafka_protocol.bodies import BODIES, EVER, problem
from reference_coordinator.classic.profiles import Settings
from reference_coordinator.replay.evidence import (
    LAST_MS,
    EpochEvent,
    Evidence,
    Hint,
    Ms,
    ObservedRequest,
    Outage,
    Parting,
    Stall,
)

FORMAT = "groupquake-events/1"
COORDINATORS = ("java", "scala")
MAX_SETTING = 2**31 - 1
Timed = TypeVar("Timed", EpochEvent, Stall, Parting)


class EventFileError(Exception):
    """A line that is not of the form; `str()` says file, line and what is wrong with it."""


class _Malformed(Exception):  # noqa: N818 (it becomes an EventFileError, which knows the place)
    """What is wrong with a line."""


class Logged(Struct, frozen=True):
    """What brokers logged of a group in addition to its requests."""

    hints: tuple[Hint, ...] = ()
    servings: tuple[EpochEvent, ...] = ()
    stalls: tuple[Stall, ...] = ()
    loading: tuple[Stall, ...] = ()
    reconnects_ms: Ms = 0.0
    partings: tuple[Parting, ...] = ()


NOTHING = Logged()


class Header(Struct, frozen=True):
    """The line that begins a sequence; other keys are ignored."""

    format: str
    kafka: str
    coordinator: str
    config: dict[str, Any]
    group: str
    sequence: int
    outages: tuple[tuple[Ms, Ms], ...] = ()
    logged: Logged = NOTHING
    profile: str = ""


class LoggedRequest(Struct, frozen=True):
    """Where a request was acted on, and when."""

    broker: str
    earliest_ms: Ms
    latest_ms: Ms
    serial: int
    taken_ms: Ms = -inf


class RequestLine(Struct, frozen=True):
    """A request, and its answer if it has one."""

    at_ms: Ms
    id: str
    connection: str
    api: str
    api_version: Annotated[int, Meta(ge=0, lt=EVER)]
    client_id: str
    client_host: str
    request: dict[str, Any]
    answered_at_ms: Ms | UnsetType = UNSET
    response: dict[str, Any] | UnsetType = UNSET
    logged: LoggedRequest | UnsetType = UNSET


class End(Struct, frozen=True):
    """The line that ends a sequence."""

    at_ms: Ms
    end: bool


class Kind(Struct, frozen=True):
    """What tells which of these a line is."""

    format: Any = UNSET
    end: Any = UNSET


_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in (Kind, Header, RequestLine, End)}


@dataclass(slots=True)
class EventSequence:
    """One sequence, as far as it was read. `line` is that of its header.

    `places` are the line numbers of its requests by their ids, `texts` all its lines as they stand.
    A counterexample names the `profile` that does not explain it.
    """

    line: int
    number: int
    kafka: str
    coordinator: str
    group: str
    settings: Settings
    outages: tuple[Outage, ...] = ()
    logged: Logged = NOTHING
    profile: str = ""
    requests: list[ObservedRequest] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    last_ms: float = 0.0

    @property
    def evidence(self) -> Evidence:
        """The sequence as the oracle takes it: with hints and loads if the file has them."""
        logged = self.logged
        return Evidence(
            self.group,
            tuple(self.requests),
            logged.hints,
            _endless(logged.servings),
            _endless(logged.stalls),
            self.outages,
            _endless(logged.loading),
            _never(logged.reconnects_ms),
            _endless(logged.partings),
        )

    def text(self, request: str) -> str:
        """Return a request's line."""
        return self.texts[self.places[request] - self.line]


def _never(at_ms: float) -> float:
    return inf if at_ms == LAST_MS else at_ms


def _endless(times: tuple[Timed, ...]) -> tuple[Timed, ...]:
    """Return what was logged, with times that stand for never."""
    never: Iterator[dict[str, Any]] = (
        {f.name: inf for f in fields(one) if getattr(one, f.name) == LAST_MS} for one in times
    )
    return tuple(replace(one, **ends) for one, ends in zip(times, never, strict=True))


def read(lines: Iterable[str], name: str) -> Iterator[EventSequence]:
    """Read a file's sequences, one after the other; `name` is the file's, for errors.

    Raises EventFileError at the first line that is not of the form.
    """
    sequence: EventSequence | None = None
    number = 0
    for number, text in enumerate(lines, 1):
        try:
            sequence, ends = _taken(text, number, sequence)
        except _Malformed as problem:
            raise EventFileError(f"{name}:{number}: {problem}") from problem
        if ends:
            yield sequence
            sequence = None
    if number == 0:
        raise EventFileError(f"{name}:1: the file is empty")
    if sequence is not None:
        raise EventFileError(
            f"{name}:{number}: the file ends, and the sequence that begins at line {sequence.line}"
            ' has no end line, {"at_ms": …, "end": true}'
        )


def _taken(text: str, number: int, before: EventSequence | None) -> tuple[EventSequence, bool]:
    """Take a line; return the sequence that it belongs to, and whether it ends that."""
    kind = _decoded(Kind, text)
    ends = kind.format is UNSET and kind.end is not UNSET
    if kind.format is not UNSET:
        sequence = _begun(text, number, before)
    elif before is None:
        what = "an end" if ends else "a request"
        raise _Malformed(f'{what} before a header, {{"format": "{FORMAT}", …}}')
    else:
        sequence = before
        if ends:
            _check_end(_decoded(End, text), sequence)
        else:
            _add(sequence, _decoded(RequestLine, text), number)
    sequence.texts.append(text.rstrip("\r\n"))
    return sequence, ends


def _decoded(kind: Any, text: str) -> Any:
    """Decode a line."""
    try:
        return _DECODERS[kind].decode(text.encode())
    except msgspec.ValidationError as error:
        raise _Malformed(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _Malformed(f"no JSON: {error}") from error


def _begun(text: str, number: int, before: EventSequence | None) -> EventSequence:
    """Read a header."""
    if before is not None:
        raise _Malformed(
            f"a header, and the sequence that begins at line {before.line} has no end line"
        )
    header = _decoded(Header, text)
    if header.format != FORMAT:
        raise _Malformed(f"format is {header.format!r}; it must be {FORMAT!r}")
    if header.coordinator not in COORDINATORS:
        known = ", ".join(COORDINATORS)
        raise _Malformed(f"coordinator is {header.coordinator!r}; it is one of {known}")
    try:
        settings = Settings.from_properties(header.config)
    except (TypeError, ValueError, OverflowError) as error:
        raise _Malformed(f"config: {error}") from error
    if not all(0 <= value <= MAX_SETTING for value in astuple(settings)):
        raise _Malformed(f"config: a setting of a group is a number from 0 to {MAX_SETTING}")
    for from_ms, until_ms in header.outages:
        if from_ms > until_ms:
            raise _Malformed(f"outages: one from {from_ms:g} ms ends before, at {until_ms:g} ms")
    return EventSequence(
        line=number,
        number=header.sequence,
        kafka=header.kafka,
        coordinator=header.coordinator,
        group=header.group,
        settings=settings,
        outages=tuple(Outage(*pair) for pair in header.outages),
        logged=header.logged,
        profile=header.profile,
    )


def _check_end(line: End, sequence: EventSequence) -> None:
    if not line.end:
        raise _Malformed("end is not true")
    answers = (seen.answered_ms for seen in sequence.requests if seen.response is not None)
    last_ms = max(answers, default=sequence.last_ms)
    if line.at_ms < max(last_ms, sequence.last_ms):
        raise _Malformed(f"the end at {line.at_ms:g} ms is before the last that happened")


def _add(sequence: EventSequence, line: RequestLine, number: int) -> None:
    """Take a request, and its answer if it has one."""
    if line.at_ms < sequence.last_ms:
        raise _Malformed(f"sent at {line.at_ms:g} ms, before the request above it")
    if line.id in sequence.places:
        raise _Malformed(f"id {line.id!r} stands at line {sequence.places[line.id]} already")
    if line.api not in BODIES:
        raise _Malformed(f"the api {line.api!r} is none of {', '.join(BODIES)}")
    answered_ms = _answered_ms(line)
    response = None if line.response is UNSET else line.response
    if wrong := problem(line.api, line.api_version, line.request, response):
        raise _Malformed(wrong)
    about = line.request[BODIES[line.api].groups]
    if line.api == CONFIGURE:
        about = [resource["resourceName"] for resource in about]
    if about not in (sequence.group, [sequence.group]):
        raise _Malformed(f"the request is about {about!r}; this is group {sequence.group!r}")
    logged = line.logged or LoggedRequest("", line.at_ms, min(answered_ms, LAST_MS), number)
    latest_ms = _never(logged.latest_ms)
    if not logged.earliest_ms <= line.at_ms <= latest_ms:
        raise _Malformed("at_ms is not from logged.earliest_ms to logged.latest_ms")
    sequence.requests.append(
        ObservedRequest(
            id=line.id,
            broker=logged.broker,
            api=line.api,
            api_version=line.api_version,
            client_id=line.client_id,
            connection=line.connection,
            earliest_ms=logged.earliest_ms,
            at_ms=line.at_ms,
            latest_ms=latest_ms,
            answered_ms=answered_ms,
            request=line.request,
            response=response,
            serial=logged.serial,
            client_host=line.client_host,
            taken_ms=logged.taken_ms,
        )
    )
    sequence.places[line.id], sequence.last_ms = number, line.at_ms


def _answered_ms(line: RequestLine) -> float:
    """Return when an answer came; never where none did."""
    if (line.response is UNSET) != (line.answered_at_ms is UNSET):
        one, other = "response", "answered_at_ms"
        stands, lacks = (other, one) if line.response is UNSET else (one, other)
        raise _Malformed(f"{stands} stands there, but no {lacks}")
    if line.answered_at_ms is UNSET:
        return inf
    if line.answered_at_ms < line.at_ms:
        raise _Malformed(
            f"answered at {line.answered_at_ms:g} ms, before it was sent at {line.at_ms:g} ms"
        )
    return line.answered_at_ms
