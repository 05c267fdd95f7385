"""The smallest course of events that shows a finding, as arrows of a sequence diagram."""

from collections.abc import Sequence
from typing import NamedTuple

from reference_coordinator.event_files.request_table import request_text, response_text
from reference_coordinator.replay import ObservedRequest
from reports.judgement.rows import Json

ACTS = ("JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP")
"""The requests by which members act on their group."""
MOST = 30  # so many arrows of a course are drawn, the last ones


class Arrow(NamedTuple):
    """A request (`asks`) or its answer: from whom, to whom, when (ms), and what it says.

    `due` is what the oracle expects instead, empty where the answer is as expected.
    """

    at_ms: float
    source: str
    target: str
    api: str
    text: str
    asks: bool
    due: str = ""


def course_of(requests: Sequence[ObservedRequest], wrong: str = "", due: str = "") -> list[Arrow]:
    """Return the arrows of requests and of their answers, in order of time.

    `wrong` is the id of the request whose answer is another than what was `due`.
    """
    found = []
    for seen in requests:
        member, broker = seen.client_id, f"broker {seen.broker}"
        found.append(Arrow(seen.at_ms, member, broker, seen.api, request_text(seen), asks=True))
        if seen.response is not None:
            of = due if seen.id == wrong else ""
            answer = response_text(seen)
            found.append(Arrow(seen.answered_ms, broker, member, seen.api, answer, False, of))
    return sorted(found, key=lambda arrow: (arrow.at_ms, not arrow.asks))[-MOST:]


def acts_until(requests: Sequence[ObservedRequest], until_ms: float) -> list[ObservedRequest]:
    """Return the last requests by which members came, went or got their share."""
    acts = [seen for seen in requests if seen.api in ACTS and seen.at_ms <= until_ms]
    return acts[-MOST // 2 :]


def as_json(arrows: Sequence[Arrow], zero_ms: float) -> Json:
    """Write a course: its participants, members first, and its arrows in s since the impact."""
    brokers = {one.target if one.asks else one.source for one in arrows}
    names = dict.fromkeys(one.source if one.asks else one.target for one in arrows)
    return {
        "participants": [*(name for name in names if name not in brokers), *sorted(brokers)],
        "arrows": [
            {"at_s": round((one.at_ms - zero_ms) / 1000, 3), "from": one.source, "to": one.target,
             "api": one.api, "text": one.text, "asks": one.asks, "due": one.due}
            for one in arrows
        ],
    }  # fmt: skip
