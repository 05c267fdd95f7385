"""What brokers logged of a group in addition to its requests, in the form of an event file.

Clients do not see it. Where it is known, from a run, it stands under `logged`: in the header, the
hints of coordinator lines, the loads and the stalls; with a request, the broker and the window in
which it was acted on.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from reference_coordinator.replay.evidence import (
    EpochEvent,
    Evidence,
    Hint,
    HintKind,
    ObservedRequest,
    Parting,
    Stall,
)

Body = Mapping[str, Any]
LAST_MS = 1e15
"""Far beyond any clock's time, and exact to a fraction of a millisecond; it stands for never."""
_PARTING = ("earliest_ms", "from_ms", "healed_ms", "until_ms")
_WINDOW = ("earliest_ms", "latest_ms")


@dataclass(frozen=True, slots=True)
class Logged:
    """What a header tells."""

    hints: tuple[Hint, ...] = ()
    epoch_events: tuple[EpochEvent, ...] = ()
    stalls: tuple[Stall, ...] = ()
    loading: tuple[Stall, ...] = ()
    reconnects_ms: float = 0.0
    partings: tuple[Parting, ...] = ()


NOTHING = Logged()


def read_logged(logged: Any) -> Logged:
    """Read what a header tells. Raises ValueError, in words, if it is not of the form."""
    _is(logged, dict, "logged is not an object")
    return Logged(
        hints=tuple(
            Hint(_time(hint, "at_ms"), HintKind(_text(hint, "kind")), _text(hint, "subject"),
                 _number(hint, "generation"), _text(hint, "broker"))
            for hint in _entries(logged, "hints")
        ),
        epoch_events=tuple(
            EpochEvent(_time(serving, "at_ms"), _text(serving, "broker"), _text(serving, "kind"),
                       _number(serving, "epoch") if "epoch" in serving else None,
                       *(_time(serving, key) if key in serving else None for key in _WINDOW))
            for serving in _entries(logged, "servings")
        ),
        stalls=tuple(_stalls(logged, "stalls")),
        loading=tuple(_stalls(logged, "loading")),
        reconnects_ms=_time(logged, "reconnects_ms") if "reconnects_ms" in logged else 0.0,
        partings=tuple(
            Parting(_text(parting, "broker"),
                    *(_time(parting, key) for key in _PARTING))
            for parting in _entries(logged, "partings")
        ),
    )  # fmt: skip


def _stalls(logged: Body, key: str) -> Iterator[Stall]:
    for stall in _entries(logged, key):
        times = _time(stall, "from_ms"), _time(stall, "until_ms")
        yield Stall(_text(stall, "broker"), *times, stall.get("proven") is not False)


def as_logged(seen: ObservedRequest, logged: Any) -> ObservedRequest:
    """Say of a request where it was acted on, and when. Raises ValueError as above."""
    _is(logged, dict, "logged is not an object")
    earliest_ms, latest_ms = _time(logged, "earliest_ms"), _time(logged, "latest_ms")
    if not earliest_ms <= seen.at_ms <= latest_ms:
        raise ValueError("at_ms is not from logged.earliest_ms to logged.latest_ms")
    return replace(
        seen,
        broker=_text(logged, "broker"),
        earliest_ms=earliest_ms,
        latest_ms=latest_ms,
        serial=_number(logged, "serial"),
        taken_ms=_time(logged, "taken_ms") if "taken_ms" in logged else float("-inf"),
    )


def logged_of(evidence: Evidence) -> dict[str, Any]:
    """Write down what stands in a header."""
    of_changes: dict[str, Any] = {
        "loading": [_logged_stall(load) for load in evidence.loading],
        "reconnects_ms": evidence.reconnects_ms,
        "partings": [_finite(asdict(parting)) for parting in evidence.partings],
    }
    return {
        "hints": [_finite(asdict(hint)) for hint in evidence.hints],
        "servings": [_logged_serving(serving) for serving in evidence.epoch_events],
        "stalls": [_logged_stall(stall) for stall in evidence.stalls],
        **{key: value for key, value in of_changes.items() if value},
    }


def _logged_serving(serving: EpochEvent) -> dict[str, Any]:
    """Write down an epoch event: of its epoch and its window what is known."""
    return {key: value for key, value in _finite(asdict(serving)).items() if value is not None}


def _logged_stall(stall: Stall) -> dict[str, Any]:
    """Write down a stall; `proven` stands only with one that is not."""
    logged = _finite(asdict(stall))
    return {key: value for key, value in logged.items() if key != "proven" or not value}


def logged_of_request(seen: ObservedRequest) -> dict[str, Any]:
    """Write down what stands with a request."""
    logged = {key: getattr(seen, key) for key in ("broker", "earliest_ms", "latest_ms", "serial")}
    if seen.taken_ms > seen.earliest_ms:
        logged["taken_ms"] = seen.taken_ms
    return _finite(logged)


def _finite(logged: Body) -> dict[str, Any]:
    return {key: LAST_MS if value == float("inf") else value for key, value in logged.items()}


def _entries(logged: Body, key: str) -> Iterator[Body]:
    entries = logged.get(key, [])
    _is(entries, list, f"logged.{key} is not a list")
    for place, entry in enumerate(entries):
        _is(entry, dict, f"logged.{key}[{place}] is not an object")
        yield entry


def _is(value: Any, kind: type, words: str) -> None:
    if type(value) is not kind:
        raise ValueError(words)


def _of(logged: Body, key: str, fits: Callable[[Any], bool], called: str) -> Any:
    if not fits(logged.get(key)):
        raise ValueError(f"logged: {key} is not {called}")
    return logged[key]


def _text(logged: Body, key: str) -> str:
    return str(_of(logged, key, lambda value: type(value) is str, "a string"))


def _number(logged: Body, key: str) -> int:
    return int(_of(logged, key, lambda value: type(value) is int, "a whole number"))


def _time(logged: Body, key: str) -> float:
    fits = lambda value: type(value) in (int, float) and 0 <= value <= LAST_MS
    at_ms = float(_of(logged, key, fits, f"a time in ms, from 0 to {LAST_MS:g}"))
    return float("inf") if at_ms == LAST_MS else at_ms
