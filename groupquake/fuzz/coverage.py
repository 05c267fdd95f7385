"""Coverage of a campaign: rules of the profile, transitions, and error codes.

A rule is covered if responses of the broker contradict a profile with only this rule changed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from kafka_protocol.errors import Error, name_of
from kafka_protocol.releases import number
from kafka_protocol.versions import FIRST_COMMIT_WITH_GROUP_ERRORS, FIRST_JOIN_WITH_REASON
from loadtest.wire import Versions
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import PROFILES

OUT_OF_REACH: Mapping[str, str] = {
    "sync_while_loading": "needs a broker that loads the group",
    "session_range_comes_first": "needs a broker that does not serve the group",
    "unserved_join_keeps_member_id": "needs a broker that does not serve the group",
    "unload_answers_waiting": "needs a broker that gives the group up",
    "write_timeout": "needs replicas that do not confirm",
    "transaction_creates_group": "TxnOffsetCommit is not sent",
    "transaction_to_unknown_group_v6": "TxnOffsetCommit is not sent",
    "transaction_is_checked_as_a_whole": "TxnOffsetCommit is not sent",
    "every_return_is_stored": "shows only after a failover",
    "stores_new_group": "shows only after a failover",
    "return_is_stored": "shows only after a failover",
    "sessions_wait_for_clients": "needs a broker that is started",
    "removed_pending_timer_runs_on": "shows in the coordinator's log alone",
}
"""Rules that a single healthy broker does not show."""

ALLOWS_MORE: Mapping[str, str] = {
    "answers_wait_for_writes=true": "what was written before may have been confirmed at once",
    "deleted_group_is_dead_first=true": "the tombstone may have been written at once",
    "describes_committed_records=true": "the first record may have been confirmed at once",
    "failures_are_answered_in_every_version=true": "what was not answered may have been lost",
    "overtaken_expiry_counts=true": "no sign of life need have come in between",
    "store_answers_latest_return=false": "where one broker writes, no return comes in between",
    "oversized_commit=INVALID_COMMIT_OFFSET_SIZE": "where answers wait for the writes before them, "
    "those of commits may be any record's failure",
}
"""Other values of rules that no response contradicts, and why."""


FIRST_EXACT = number("4.1.0")
"""From this release on Java's coordinator knows how large a batch is before the log does (tried on
4.1.1 and 4.3.0; 3.9.1 forgets the batch's header)."""


def moot(profile: Profile, versions: Versions, kafka: str) -> Mapping[str, str]:
    """List the rules that have no effect with this release, its API versions or other rules."""
    found: dict[str, str] = {}
    if number(kafka) >= FIRST_EXACT:
        found["answers_wait_for_writes"] = "what is too large for the log is a batch of its own"
    if not profile.return_is_stored:
        kept = ("failed_replacement_restores_protocols", "store_answers_latest_return")
        found |= dict.fromkeys(kept, "no return is stored")
    if not profile.pending_sync_timer:
        timed = ("replaced_id_stays_pending_sync", "stale_sync_id_stops_timer")
        found |= dict.fromkeys((*timed, "sync_timer_spares_statics"), "there is no such timer")
    if not profile.last_to_rejoin_are_refused:
        found["refused_pending_stays"] = "no pending member is refused"
    if versions["OFFSET_COMMIT"][1] < FIRST_COMMIT_WITH_GROUP_ERRORS:
        found["commit_to_unknown_group_v9"] = "OffsetCommit v9 is not spoken"
    if versions["JOIN_GROUP"][1] < FIRST_JOIN_WITH_REASON:
        found["join_reason_counts"] = "JoinGroup v8 is not spoken"
    return found


@dataclass(frozen=True, slots=True)
class Flip:
    """A profile with one rule changed."""

    rule: str
    value: Any
    profile: Profile

    @property
    def name(self) -> str:
        """The rule and its value, as printed."""
        is_error = isinstance(self.value, Error)
        return f"{self.rule}={self.value.name if is_error else str(self.value).lower()}"


def flips(profile: Profile) -> Iterator[Flip]:
    """List a profile's rules with every other value that some profile has."""
    for field in fields(Profile):
        if field.name in ("name", "settings") or field.name in OUT_OF_REACH:
            continue
        own = getattr(profile, field.name)
        others = {getattr(other, field.name) for other in PROFILES.values()} - {own}
        if isinstance(own, bool):
            others = {not own}
        for value in sorted(others):
            flip = Flip(field.name, value, replace(profile, **{field.name: value}))
            if flip.name not in ALLOWS_MORE:
                yield flip


def errors_of(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield `API ERROR` for every error code in the response of an event line, also for NONE."""
    for code in _codes(line.get("response") or {}):
        yield f"{line['api']} {name_of(code)}"


def _codes(body: Any) -> Iterator[int]:
    if isinstance(body, list):
        for item in body:
            yield from _codes(item)
    elif isinstance(body, dict):
        if "errorCode" in body:
            yield int(body["errorCode"])
        for value in body.values():
            yield from _codes(value)
