"""What the answers to processes must be, which members stay and which ids stand (KIP-345)."""

from collections.abc import Iterator

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    Answer,
    CommitResponse,
    HeartbeatResponse,
    LeaveResponse,
    SyncResponse,
)
from reference_coordinator.classic.events import (
    Event,
    JoinReceived,
    LeaveReceived,
    Loaded,
    TimerFired,
    TimerKind,
    Unloaded,
)
from reference_coordinator.classic.state import COMPLETING_REBALANCE, PREPARING_REBALANCE
from reference_coordinator.driving.client import WAITING
from selftest.explore.scene import Process, Stepped

MEMBERS_ONLY = (HeartbeatResponse, SyncResponse, CommitResponse)
FINE = (Error.NONE, Error.REBALANCE_IN_PROGRESS)


def answered_once(step: Stepped) -> Iterator[str]:
    """Each request is answered once."""
    asked = {*step.before.in_hand, getattr(step.event, "request", "")}
    for answer in step.answers:
        if answer.request not in asked:
            yield f"an answer to {'nothing' if not answer.request else 'what is answered'}"
        asked.discard(answer.request)


def answered_at_last(step: Stepped) -> Iterator[str]:
    """Each request is answered at last."""
    # here: before its broker resigns; that none waits for ever is checked by `search.Waiting`
    waits = any(p.phase in WAITING for p in step.after.processes)
    if isinstance(step.event, Unloaded) and waits:
        yield "a broker that resigns leaves a request without a response"


def _served(step: Stepped) -> Iterator[tuple[Process, Answer]]:
    """Yield the answers to processes that take themselves for members, to their own requests."""
    for answer in step.answers:
        for p in step.before.processes:
            if p.request == answer.request and p.has_joined:
                yield p, answer


def member_is_served(step: Stepped) -> Iterator[str]:
    """A member that the group has is not called unknown or fenced."""
    group, event = step.before.group, step.event
    if isinstance(event, TimerFired) and event.timer.kind is TimerKind.SESSION:
        for p in step.before.processes:
            beats = p.is_beating and not step.before.is_closed
            if beats and p.member_id == event.timer.member_id and step.effects:
                yield "its session ends though it sends heartbeats"
    for p, answer in _served(step):
        owner = group.static_ids.get(p.instance or "", p.member_id)
        is_member = p.member_id in group.members and owner == p.member_id
        own = getattr(event, "request", "") == answer.request
        error = answer.response.error
        if is_member and own and error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            yield f"{Error(error).name} by {step.cause}"
        elif error == Error.FENCED_INSTANCE_ID and not p.is_replaced:
            if not isinstance(event, JoinReceived):
                yield "fenced, and no other process of its instance has joined"
        elif error == Error.UNKNOWN_MEMBER_ID and isinstance(event, JoinReceived) and not own:
            yield "called unknown where it is replaced"


def unknown_is_refused(step: Stepped) -> Iterator[str]:
    """A request with ids that the group does not have is refused."""
    group = step.before.group
    for p, answer in _served(step):
        if isinstance(answer.response, MEMBERS_ONLY) and answer.response.error in FINE:
            owner = group.static_ids.get(p.instance or "", p.member_id)
            if p.member_id not in group.members or owner != p.member_id:
                yield f"{type(answer.response).__name__} without an error"


def own_generation(step: Stepped) -> Iterator[str]:
    """A request is accepted only in the generation that its sender was given."""
    for p, answer in _served(step):
        accepted = isinstance(answer.response, MEMBERS_ONLY) and answer.response.error == Error.NONE
        if accepted and p.serial != step.before.serial:
            same = p.generation == step.before.group.generation
            what = "another of the same number" if same else "another"
            yield f"{type(answer.response).__name__} of {what} is accepted"


def leave_is_true(step: Stepped) -> Iterator[str]:
    """LeaveGroup answers NONE for a member that it removes, and for no other."""
    before = step.before.group
    for answer in step.answers:
        left_by = answer.response.members if isinstance(answer.response, LeaveResponse) else ()
        for member_id, instance, error in left_by:
            owner = before.static_ids.get(instance or "", member_id)
            left = owner in before.members and owner not in step.after.group.members
            left |= owner in before.pending_joins
            if left != (error == Error.NONE):
                yield f"{Error(error).name} for a member that {'left' if left else 'did not leave'}"


def announced(step: Stepped) -> Iterator[str]:
    """A member learns of a rebalance that is under way."""
    state = step.before.group.state
    for _, answer in _served(step):
        response = answer.response
        if response.error == Error.NONE:
            if isinstance(response, HeartbeatResponse) and state is PREPARING_REBALANCE:
                yield "Heartbeat is answered NONE in PreparingRebalance"
            if isinstance(response, CommitResponse) and state is COMPLETING_REBALANCE:
                yield "OffsetCommit is answered NONE in CompletingRebalance"


def share(step: Stepped) -> Iterator[str]:
    """A member gets the share that the leader assigned."""
    for answer in step.answers:
        synced = answer.response
        if isinstance(synced, SyncResponse) and not (synced.error or synced.assignment):
            yield "SyncGroup is answered without a share"


def _removed(step: Stepped) -> Iterator[tuple[str, str, str | None]]:
    """Yield each instance whose member id no longer stands, with the id, and the one that does."""
    before = step.known or step.before.group
    for instance, owner in before.static_ids.items():
        now = step.after.group.static_ids.get(instance)
        if now != owner and not isinstance(step.event, Unloaded):
            yield instance, owner, now


def static_stays(step: Stepped) -> Iterator[str]:
    """A static member is removed by its session's end or by LeaveGroup alone."""
    event = step.event
    for instance, owner, now in _removed(step):
        if now is not None or _leaves(event, instance, owner):
            continue
        if isinstance(event, Loaded) and not _was_stored(step, instance):
            continue  # no coordinator promises a member before its first generation is stored
        if not (isinstance(event, TimerFired) and event.timer == (TimerKind.SESSION, owner)):
            yield f"removed by {step.cause}"


def _was_stored(step: Stepped, instance: str) -> bool:
    record = step.before.stored_record
    return record is not None and any(m.group_instance_id == instance for m in record.members)


def _leaves(event: Event, instance: str, owner: str) -> bool:
    return isinstance(event, LeaveReceived) and any(
        instance == i or owner == m for m, i in event.members
    )


def id_stays(step: Stepped) -> Iterator[str]:
    """The id that an instance was given stands until another JoinGroup replaces it."""
    event = step.event
    for instance, owner, now in _removed(step):
        known = any(p.member_id == owner and p.has_joined and not p.is_replaced
                   for p in step.after.processes)  # fmt: skip
        rejoins = isinstance(event, JoinReceived) and event.group_instance_id == instance
        if now is not None and known and not rejoins:
            yield f"a live process's id is replaced by {step.cause}"


def session_served(step: Stepped) -> Iterator[str]:
    """A session ends only while the broker takes requests."""
    event, before = step.event, step.before
    if before.is_closed and isinstance(event, TimerFired) and step.effects:
        yield f"{event.timer.kind} timer expires before the broker takes requests"


def known_is_let_in(step: Stepped) -> Iterator[str]:
    """A known instance is let into its group again."""
    event = step.event
    if isinstance(event, JoinReceived) and event.group_instance_id in step.before.group.static_ids:
        for answer in step.answers:
            refused = (Error.GROUP_MAX_SIZE_REACHED, Error.UNKNOWN_SERVER_ERROR)
            if answer.request == event.request and answer.response.error in refused:
                yield Error(answer.response.error).name
