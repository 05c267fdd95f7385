"""The context of one `step`: the group as it changes, and the effects in their order.

`step` is pure; inside it, rules share this short-lived object instead of passing tuples around.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Unpack

from kafka_protocol.errors import Error
from kafka_protocol.versions import FIRST_UNANSWERED_FAILURE
from reference_coordinator.classic.checks import validate_member
from reference_coordinator.classic.effects import (
    Answer,
    Arm,
    Bound,
    Disarm,
    Effect,
    JoinResponse,
    Persist,
    Reason,
    Response,
    Transition,
)
from reference_coordinator.classic.events import (
    NO_CHOICES,
    SESSION_TIMER,
    Choices,
    JoinReceived,
    SyncReceived,
    Timer,
    TimerKind,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord, StoredMembers
from reference_coordinator.classic.state import Group, GroupFields, Member, State
from reference_coordinator.frozen import replace_fields

FIRST_UNANSWERED = {
    JoinReceived: FIRST_UNANSWERED_FAILURE["JOIN_GROUP"],
    SyncReceived: FIRST_UNANSWERED_FAILURE["SYNC_GROUP"],
}


@dataclass(slots=True)
class Context:
    """What the rules of one `step` read and change."""

    group: Group
    profile: Profile
    at_ms: float
    choices: Choices = NO_CHOICES
    effects: list[Effect] = field(default_factory=list)

    def change(self, **fields: Unpack[GroupFields]) -> None:
        """Replace fields of the group."""
        self.group = replace_fields(self.group, **fields)

    def put(self, member: Member) -> None:
        """Add a member or replace the one of the same id."""
        self.change(members=self.group.members.put(member))

    def answer(self, request: str, response: Response) -> None:
        """Answer a request."""
        self.effects.append(Answer(request, response))

    def fail(self, event: JoinReceived | SyncReceived, response: Response) -> None:
        """Answer a request over which the coordinator fails, unless its version gets none."""
        newest = FIRST_UNANSWERED[type(event)]
        if self.profile.failures_are_answered_in_every_version or event.api_version < newest:
            self.answer(event.request, response)

    def answer_join(self, member: Member, response: JoinResponse) -> None:
        """Answer a member's pending JoinGroup, if it has one."""
        if member.join is not None:
            self.answer(member.join, response)
            self.put(replace_fields(member, join=None))

    def arm(self, kind: TimerKind, delay_ms: float, member_id: str = "") -> None:
        """Start a timer, from now on."""
        self.effects.append(Arm(Timer(kind, member_id), self.at_ms + delay_ms))

    def disarm(self, kind: TimerKind, member_id: str = "") -> None:
        """Stop a timer."""
        self.effects.append(Disarm(Timer(kind, member_id)))

    def validate(self, member_id: str, instance_id: str | None) -> Error:
        """Check the two ids of a request that only members may send."""
        strict = self.profile.unknown_instance_is_refused
        return validate_member(
            self.group, member_id, instance_id, ignore_unknown_instance=not strict
        )

    def keep_alive(self, member: Member, timeout_ms: int | None = None) -> None:
        """Restart a member's session, with its own timeout or another."""
        if member.is_new and not self.profile.new_members_have_sessions:
            self.disarm(SESSION_TIMER, member.member_id)
        else:
            timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
            self.arm(SESSION_TIMER, timeout_ms, member.member_id)

    def transition(
        self,
        after: State,
        reason: Reason | None = None,
        member_id: str = "",
        **fields: Unpack[GroupFields],
    ) -> None:
        """Move the group into another state, and change `fields` of it."""
        before = self.group.state
        fields["state"], fields["previous_state"] = after, before
        self.change(**fields)
        self.effects.append(
            Transition(
                before=before,
                after=after,
                generation=self.group.generation,
                reason=reason,
                member_id=member_id,
                members=len(self.group.members),
                static_members=len(self.group.static_ids),
            )
        )

    def persist(
        self,
        request: str | None,
        assignment: Mapping[str, str] | None = None,
        **fields: Unpack[GroupFields],
    ) -> None:
        """Write the group's record, with the leader's new assignment if there is one.

        The group's other `fields` change at the same time.
        """
        group = self.group
        members = StoredMembers(group.members, group.protocol, assignment)
        record = GroupRecord(
            group.generation, group.protocol_type, group.protocol, group.leader, members,
            group.config,
        )  # fmt: skip
        self.store(request, record, **fields)

    def store(
        self, request: str | None, record: GroupRecord, **fields: Unpack[GroupFields]
    ) -> None:
        """Write a record as it is; the group's other `fields` change at the same time."""
        fields["stored"] = record
        self.change(**fields)
        self.effects.append(Persist(request, record))

    def create_group(self) -> None:
        """Create the group with the first request that may, even one that it refuses."""
        if not self.group.exists:
            self.change(exists=True, created_ms=self.at_ms)
            if self.profile.stores_new_group:
                self.persist(None)

    def bind(self, kind: str, choice: str, allowed: frozenset[str]) -> str:
        """Pick a value that Kafka leaves open: the choice if allowed, else the first by name.

        Where one value alone is allowed nothing is open, and nothing is counted as bound.
        """
        if len(allowed) > 1:
            refused = "" if choice in allowed else choice
            value = min(allowed) if refused or not choice else choice
            self.effects.append(Bound(kind, value, refused))
            return value
        return next(iter(allowed))


def refuse(member_id: str, error: Error) -> JoinResponse:
    """Build the response to a JoinGroup that is refused."""
    return JoinResponse(error, member_id)
