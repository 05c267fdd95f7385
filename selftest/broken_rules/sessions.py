"""Rules of sessions switched off: what keeps a member alive, and what comes of one that is not."""

from collections.abc import Iterable
from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Answer, CommitResponse, HeartbeatResponse
from reference_coordinator.classic.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    RecordWritten,
    TimerFired,
    TimerKind,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group, Service
from reference_coordinator.classic.step import step
from selftest.broken_rules.form import Outcome, Step, sooner, without_sessions

EARLY_SHARE = 0.4
"""What is left of a session in the mutant that expires members early."""


def never_expires(group: Group, event: Event, profile: Profile) -> Outcome:
    """Keep members whose session ended."""
    if isinstance(event, TimerFired) and event.timer.member_id in group.members:
        return group, ()
    return step(group, event, profile)


def expires_early(group: Group, event: Event, profile: Profile) -> Outcome:
    """End sessions long before their time."""
    after, effects = step(group, event, profile)
    return after, sooner(effects, TimerKind.SESSION, event.at_ms, EARLY_SHARE)


def expires_the_waiting(group: Group, event: Event, profile: Profile) -> Outcome:
    """End the session of a member that waits for its answer."""
    if isinstance(event, TimerFired) and event.timer.kind is TimerKind.SESSION:
        member = group.members.get(event.timer.member_id)
        if member is not None and member.is_awaiting:
            lone = replace(member, is_new=True)
            group = replace(group, members=group.members.put(lone))
    return step(group, event, profile)


def heartbeats_do_not_keep_alive(group: Group, event: Event, profile: Profile) -> Outcome:
    """Let sessions run on whatever heartbeats come."""
    after, effects = step(group, event, profile)
    return after, without_sessions(effects) if isinstance(event, HeartbeatReceived) else effects


def commits_do_not_keep_alive(group: Group, event: Event, profile: Profile) -> Outcome:
    """Let sessions run on whatever commits come."""
    after, effects = step(group, event, profile)
    return after, without_sessions(effects) if isinstance(event, CommitReceived) else effects


def syncs_do_not_keep_alive(group: Group, event: Event, profile: Profile) -> Outcome:
    """Let sessions run on when the assignment is handed out."""
    after, effects = step(group, event, profile)
    return after, without_sessions(effects) if isinstance(event, RecordWritten) else effects


def answers_strangers_heartbeats(group: Group, event: Event, profile: Profile) -> Outcome:
    """Let members that are gone go on with their heartbeats."""
    if isinstance(event, HeartbeatReceived) and _is_strange(group, event):
        return group, (Answer(event.request, HeartbeatResponse(Error.NONE)),)
    return step(group, event, profile)


def stores_strangers_commits(group: Group, event: Event, profile: Profile) -> Outcome:
    """Take commits of members that are gone."""
    if isinstance(event, CommitReceived) and _is_strange(group, event):
        return group, (Answer(event.request, CommitResponse(Error.NONE)),)
    return step(group, event, profile)


def _is_strange(group: Group, event: HeartbeatReceived | CommitReceived) -> bool:
    served = group.service is Service.ACTIVE and group.exists
    return served and event.member_id not in {"", *group.members}


MUTANTS: Iterable[Step] = (
    never_expires,
    expires_early,
    expires_the_waiting,
    heartbeats_do_not_keep_alive,
    commits_do_not_keep_alive,
    syncs_do_not_keep_alive,
    answers_strangers_heartbeats,
    stores_strangers_commits,
)
