"""Requests that a broker never answered, though LeaveGroup removed their member.

A request that waits in a group is answered once its member is removed: a JoinGroup is, with
UNKNOWN_MEMBER_ID. A broker logs a request with its response, so that one without is in no log: only
the client can tell of it (`unanswered` in its history). That a coordinator answers others in
that time shows that it did not stand still.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach, breach
from reports.judgement.run.history import ClientEvent

Json = dict[str, Any]

AT_ONCE_S, PROVEN_S = 1, 5
"""In how many seconds after the removal the coordinator may answer others first, and in how many
at least if that is proven."""


@dataclass(slots=True)
class Unanswered:
    """Takes all requests of a group as they come in, then what its clients tell of their own."""

    _removals: dict[str, ObservedRequest] = field(default_factory=dict)
    """The latest LeaveGroup by the member id that it removed, or else by its instance id."""
    _seconds: set[int] = field(default_factory=set)
    """The seconds in which the coordinator answered."""

    def add(self, seen: ObservedRequest) -> None:
        """Take a request."""
        self._seconds.add(int(seen.answered_ms // 1000))
        if seen.api == "LEAVE_GROUP" and not seen.response_fields.get("errorCode"):
            for name in _removed(seen):
                self._removals[name] = seen

    def reported(self, event: ClientEvent) -> Iterator[Json]:
        """Yield a row of `BREACHES`, without the group, if the broker had to answer."""
        names = filter(None, (event.member_id, event.instance_id))
        left = next((self._removals[name] for name in names if name in self._removals), None)
        if left is None or not event.sent_at_ms <= left.answered_ms <= event.at_ms:
            return
        after = range(int(left.answered_ms // 1000) + 1, int(event.at_ms // 1000))
        worked_s = len(self._seconds.intersection(after))
        if worked_s > AT_ONCE_S:
            waited_s = (event.at_ms - left.answered_ms) / 1000
            yield breach(
                Breach.NEVER_ANSWERED,
                event.at_ms,
                f"{event.api} of {event.client} is answered once its member is removed",
                f"no answer {waited_s:.1f} s later",
                shown_by=left,
                history=event.place,
                proven=worked_s >= PROVEN_S,
            )


def _removed(leave: ObservedRequest) -> Iterator[str]:
    """Yield what names the members that a LeaveGroup removed: member ids, or else instance ids."""
    results = leave.response_fields.get("members") or [{"errorCode": 0, **leave.request}]
    for result in results:
        name = result.get("memberId") or result.get("groupInstanceId")
        if name and not result["errorCode"]:
            yield name
