"""Two witnesses of each request: the line of its broker, and what the tap saw on the wire.

Where a run has both, they must say the same. Which of them is wrong, neither tells: a finding names
both places.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from kafka_protocol.apis import GROUP_APIS, LOGGED_APIS
from kafka_protocol.bodies import FORMER_NAMES
from reports.judgement.breaches import Breach, breach
from reports.judgement.log.log_places import LogPlaces

Json = dict[str, Any]
Row = Mapping[str, Any]
Kill = tuple[str, float, float]

NOT_COMPARED = "throttleTimeMs"
"""A client waits for this time; the tap does not."""
KILLED_MS = 2_000.0
"""How long before a broker is killed it may have answered what it had no time to log."""
ENDED_MS = 1_000.0
"""How long before its last line the tap may have missed a request: both end at about one time."""


class Doubt(StrEnum):
    """Why two sides may not be of one request."""

    NAT = "by its number alone: the broker logs other addresses than the tap"
    AGAIN = "by its number and addresses alone: two connections of the client had the same"


def compared_apis(*, tells_bytes: bool) -> tuple[str, ...]:
    """Return the APIs that both witnesses have: logs before 2.8 hold no OffsetFetch."""
    return LOGGED_APIS if tells_bytes else GROUP_APIS


def differs(broker: Row | None, tap: Row | None, *, tells_bytes: bool = True) -> bool:
    """Tell whether two sides of a request differ, or one is missing that has to be there."""
    if broker is None or tap is None:
        return True
    if (broker["request"], broker["response"]) == (tap["request"], tap["response"]):
        return False
    return any(True for _ in _differences(broker, tap, tells_bytes=tells_bytes))


def judged(
    pairs: Iterable[Row],
    places: tuple[LogPlaces, LogPlaces],
    kills: Sequence[Kill],
    ended_ms: Mapping[str, float],
    *,
    whole: bool,
    tells_bytes: bool = True,
) -> Iterator[Json]:
    """Yield the breaches that pairs of sides show.

    Each pair has `broker`, `of_broker`, `of_tap`, and a `doubt` where these may not be one request:
    what they show is not proven then.
    `places` are those of the brokers' lines and of the tap's; `ended_ms` is when the tap wrote its
    last line about each broker (id); `whole` tells whether no line of the tap is missing.
    """
    of_brokers, of_tap = places
    for pair in pairs:
        name, broker, tap = pair["broker"], pair["of_broker"], pair["of_tap"]
        side: Row = tap if broker is None else broker
        about = f"{side['api']} of {side['client_id']}, number {side['correlation_id']}"
        if pair["doubt"]:
            about += f" ({pair['doubt']})"
        at_broker = "" if broker is None else of_brokers.written(name, broker["line"])
        at_tap = "" if tap is None else of_tap.written(name, tap["line"])
        row: Callable[..., Json] = lambda expected, observed, proven=True, **_: {
            **breach(
                Breach.BROKER_AND_WIRE,
                side["answered_ms"],  # noqa: B023
                expected,
                observed,
                proven=proven and not pair["doubt"],  # noqa: B023
            ),
            "broker": name,  # noqa: B023
            "line": 0 if broker is None else broker["line"],  # noqa: B023
        }
        if broker is not None and tap is not None:
            words = list(_differences(broker, tap, tells_bytes=tells_bytes))
            ours, theirs = (", ".join(each) for each in zip(*words, strict=True))
            yield row(f"{about}: {ours} in {at_broker}", f"{theirs} in {at_tap}")
        elif broker is None and tap["response"] is not None:
            killed = any(
                killed == name and from_ms - KILLED_MS <= tap["answered_ms"] <= until_ms
                for killed, from_ms, until_ms in kills
            )
            if not killed:
                yield row(f"{about}: a line of broker {name}", f"none, and an answer in {at_tap}")
        elif tap is None:
            proven = whole and side["answered_ms"] < ended_ms.get(name, 0.0) - ENDED_MS
            yield row(f"{about}: a line of the tap", f"none, and a line in {at_broker}", proven)


def _differences(broker: Row, tap: Row, *, tells_bytes: bool) -> Iterator[tuple[str, str]]:
    """Yield what the broker's line says of a field, and what the tap's says."""
    bodies = ["response"] if tap["response"] is not None else []
    for body in (["request"] if tells_bytes else []) + bodies:
        ours, theirs = (_plain(json.loads(side[body])) for side in (broker, tap))
        if not tells_bytes:
            ours, theirs = ({"errorCode": one.get("errorCode")} for one in (ours, theirs))
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                yield tuple(f"{body} {name}={_shown(one.get(name))}" for one in (ours, theirs))  # type: ignore[misc]


def _plain(value: Any) -> Any:
    """Leave out what is null or not compared, and name fields as all releases may.

    The tap names them as the newest release does, and a broker as its own.
    """
    if isinstance(value, dict):
        named = {FORMER_NAMES.get(key, key): one for key, one in value.items()}
        found = {key: _plain(one) for key, one in named.items() if key != NOT_COMPARED}
        return {key: one for key, one in found.items() if one is not None}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= 80 else f"{text[:77]}..."
