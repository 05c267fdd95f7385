"""How record writes end: nothing in the evidence tells, but the answers that waited for them."""

from collections.abc import Sequence

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay.evidence import ObservedRequest, Outage
from reference_coordinator.replay.wire import answer_of


def outcome_of(seen: ObservedRequest, outages: Sequence[Outage], profile: Profile) -> Error:
    """Tell the outcome of a request's write: it succeeds, unless a broker was down meanwhile.

    Then the answer may tell of an error that only a write can end in.
    """
    down = any(
        outage.from_ms <= seen.answered_ms and outage.until_ms >= seen.earliest_ms
        for outage in outages
    )
    code = answer_of(seen).error if down and seen.response else NO_ERROR
    return Error(code) if code in profile.failed_writes else NO_ERROR
