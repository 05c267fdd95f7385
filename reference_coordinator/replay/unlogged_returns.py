"""Static rejoins that a coordinator stored just before it was killed, and never logged.

A broker logs a request once its response is sent. The new member id of a static rejoin is in the
group's record before that (KIP-345, KAFKA-10284). So the successor of a killed coordinator may know
an id that no response gave. It shows where a request with this id is answered as one of a member,
or a response names it as the leader's. That is bound, and a doubt: nothing shows the JoinGroup.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.replay.alternatives import GivenIds
from reference_coordinator.replay.coordinator_epochs import Span
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.stretches import SETTLING_MS

UUID_LENGTH = 36
AS_MEMBER = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
WHILE_LOADING = (("HEARTBEAT", Error.NONE), ("SYNC_GROUP", Error.REBALANCE_IN_PROGRESS))
"""What a coordinator that loads the group answers with whatever id (SyncGroup: Scala)."""


def may_have_stored_more(before: Span | None, loaded_ms: float, profile: Profile) -> bool:
    """Tell whether the coordinator before was killed: it ended, and did not give the group up."""
    if before is None or not profile.return_is_stored:
        return False
    ended = any(event.kind == "ended" and event.at_ms <= loaded_ms for event in before.inside)
    return ended and all(event.kind != "unloaded" for event in before.inside)


def unlogged_returns(
    record: GroupRecord,
    requests: Iterable[ObservedRequest],
    given_ids: GivenIds,
    loaded_ms: float,
) -> dict[str, str]:
    """Find members of a record that have new ids under its next coordinator, new by old id.

    `requests` are those of that coordinator, in order of time: the first id of an instance counts.
    It has loaded the group at `loaded_ms`.
    """
    found: dict[str, str] = {}
    statics = {m.group_instance_id: m.member_id for m in record.members if m.group_instance_id}
    for member_id in dict.fromkeys(_members_in(requests, loaded_ms + SETTLING_MS)):
        instance = member_id[: -UUID_LENGTH - 1]
        old = statics.get(instance)
        if old is not None and member_id.startswith(f"{instance}-") and old not in found:
            found[old] = old if member_id in given_ids else member_id
    return {old: new for old, new in found.items() if new != old}


def with_new_ids(record: GroupRecord, new_ids: dict[str, str]) -> GroupRecord:
    """Return a record in which members have other ids."""
    members = tuple(
        replace(member, member_id=new_ids.get(member.member_id, member.member_id))
        for member in record.members
    )
    leader = new_ids.get(record.leader or "", record.leader)
    return replace(record, members=members, leader=leader)


def _members_in(requests: Iterable[ObservedRequest], loads_until_ms: float) -> Iterator[str]:
    """Yield the ids that a coordinator's responses show to be those of members."""
    for seen in requests:
        response = seen.response_fields
        error = response.get("errorCode")
        may_load = seen.earliest_ms <= loads_until_ms and (seen.api, error) in WHILE_LOADING
        if error in AS_MEMBER and not may_load and seen.request.get("groupInstanceId"):
            yield seen.request.get("memberId") or ""
        yield response.get("leader") or ""
