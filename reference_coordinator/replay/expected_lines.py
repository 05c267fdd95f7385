"""The lines that a coordinator must print of a group and its members, and what they say.

Each comes from what a step did to the group, and is compared one to one with the lines observed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reference_coordinator.classic.effects import Answer, Effect, LeaveResponse, Reason, Transition
from reference_coordinator.classic.events import (
    JOIN_TIMER,
    SESSION_TIMER,
    Event,
    JoinReceived,
    LeaveReceived,
    Loaded,
    TimerFired,
)
from reference_coordinator.classic.state import PREPARING_REBALANCE, Group, Member

Says = tuple[tuple[str, str], ...]
"""Fields of a line, by the names that its template has, and their values: plain, with no instance
id and no reason as empty texts, and sets of ids as `listed`."""


class DueLine(NamedTuple):
    """A line that is due: its template, whom it is about, and what else it says.

    The subject is a member id; of a replaced member its instance id, of a rebalance that begins the
    old generation, of lines about the group nothing.
    """

    line: str
    subject: str
    says: Says = ()


def listed(ids: Iterable[str]) -> str:
    """Write member ids, in no order of theirs, as one text."""
    return ", ".join(sorted(ids))


def expected_lines(
    before: Group, after: Group, event: Event, effects: Sequence[Effect] = ()
) -> Iterator[DueLine]:
    """Yield the lines of a step, and of each rebalance that it begins."""
    match event:
        case JoinReceived():
            yield from _of_join(before, after, event)
        case LeaveReceived():
            yield from _of_leave(before, after, event)
        case TimerFired():
            yield from _of_timer(before, after, event)
        case Loaded() if after.exists:
            counts = ("members", str(len(after.members))), ("generation", str(after.generation))
            yield DueLine("group_loaded", "", counts)
            yield from (DueLine("member_loaded", member) for member in after.members)
    for instance in before.held_back.keys() & after.static_ids.keys():
        says = ("state", str(before.state)), ("instance", instance)
        yield DueLine("static_added", after.static_ids[instance], says)
    for effect in effects:
        if isinstance(effect, Transition) and effect.after is PREPARING_REBALANCE:
            if effect.reason is Reason.PENDING_SYNC:
                yield DueLine("unsynced_removed", "", (("removed", _overdue(before, after)),))
            yield _preparing(before, after, event, effect, effects)


def _of_join(before: Group, after: Group, event: JoinReceived) -> Iterator[DueLine]:
    state = ("state", str(before.state))
    instance = event.group_instance_id
    if event.member_id:
        if event.member_id in before.pending_joins and event.member_id in after.members:
            yield DueLine("pending_joins", event.member_id, (state,))
    elif instance is not None:
        old, new = before.static_ids.get(instance), after.static_ids.get(instance)
        if old is None and new is not None:
            yield DueLine("static_added", new, (state, ("instance", instance)))
        elif old is not None and new not in (None, old):
            yield DueLine("static_replaced", instance, (state, ("member", old)))
    else:
        given, added = (after.pending_joins - before.pending_joins,
                        after.members.keys() - before.members.keys())  # fmt: skip
        yield from (DueLine("dynamic_given_id", member, (state,)) for member in given)
        yield from (DueLine("dynamic_added", member, (state,)) for member in added)


def _of_leave(before: Group, after: Group, event: LeaveReceived) -> Iterator[DueLine]:
    reasons = _reasons(before, event)
    for member_id in before.members.keys() - after.members.keys():
        member = before.members[member_id]
        about = ("instance", member.group_instance_id or ""), ("more", _described(member))
        yield DueLine("left", member_id, (("client_reason", reasons.get(member_id, "")), *about))
    for member_id in before.pending_joins - after.pending_joins:
        yield DueLine("pending_left", member_id, (("client_reason", reasons.get(member_id, "")),))


def _reasons(before: Group, event: LeaveReceived) -> Mapping[str, str]:
    """Return the reasons that a LeaveGroup gives, by member id; the first of a member counts."""
    found: dict[str, str] = {}
    for (member_id, instance), reason in zip(event.members, event.reasons, strict=False):
        owner = member_id or before.static_ids.get(instance or "", "")
        found.setdefault(owner, reason or "")
    return found


def _described(member: Member) -> str:
    """Write a member as Scala's `MemberMetadata` does, from its instance id on."""
    instance = "None" if member.group_instance_id is None else f"Some({member.group_instance_id})"
    return (
        f"{instance}, clientId={member.client_id}, clientHost={member.client_host}, "
        f"sessionTimeoutMs={member.session_timeout_ms}, "
        f"rebalanceTimeoutMs={member.rebalance_timeout_ms}, "
        f"supportedProtocols=List({', '.join(name for name, _ in member.protocols)})"
    )


def _of_timer(before: Group, after: Group, event: TimerFired) -> Iterator[DueLine]:
    kind, member_id = event.timer
    gone = before.members.keys() - after.members.keys()
    if kind is SESSION_TIMER:
        if member_id in before.members and member_id not in after.members:
            name = "pending_expired" if event.of_pending else "session_expired"
            yield DueLine(name, member_id)
        elif member_id in before.removed_pending_joins or (
            member_id in before.pending_joins and member_id not in after.pending_joins
        ):
            yield DueLine("pending_expired", member_id)
    elif kind is JOIN_TIMER and before.state is PREPARING_REBALANCE and not before.extends_delay:
        if gone:
            yield DueLine("absent_dynamic_removed", "", (("removed", listed(gone)),))
        if after.state is PREPARING_REBALANCE:
            yield DueLine("nobody_rejoined", "")


def _overdue(before: Group, after: Group) -> str:
    """List the members that the pending-sync timer removed, replaced ids too."""
    return listed(before.pending_syncs - after.members.keys())


def _preparing(
    before: Group, after: Group, event: Event, begun: Transition, effects: Sequence[Effect]
) -> DueLine:
    """Return what the line says that a rebalance begins with, see `Grammar.reasons`."""
    member = begun.member_id
    says: list[tuple[str, str]] = [("reason", str(begun.reason)), ("state", str(begun.before))]
    if isinstance(event, JoinReceived):
        says.append(("client_reason", event.client_reason))
        says.append(("instance", event.group_instance_id or ""))
    elif begun.reason is Reason.PENDING_SYNC:
        member = _overdue(before, after)
    elif isinstance(event, LeaveReceived):
        says.append(("members_sent", _left_as_sent(event, effects)))
        says.append(("client_reason", _reasons(before, event).get(begun.member_id, "")))
    return DueLine("preparing", str(begun.generation), (*says, ("member", member)))


def _left_as_sent(event: LeaveReceived, effects: Sequence[Effect]) -> str:
    """List the members that left, by the ids that the request gave of them."""
    answers = (effect.response for effect in effects if isinstance(effect, Answer))
    found = next((answer for answer in answers if isinstance(answer, LeaveResponse)), None)
    if found is None or not found.members:
        return event.members[0][0]
    return ", ".join(member_id for member_id, _, error in found.members if not error)
