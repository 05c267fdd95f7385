"""`step`: one event in, the next state and its effects out.

`_HANDLERS` names the module that handles each event.
"""

from collections.abc import Callable
from typing import Any, Protocol

from reference_coordinator.classic.context import Context
from reference_coordinator.classic.delete_groups import delete, remove_group
from reference_coordinator.classic.describe_groups import describe
from reference_coordinator.classic.effects import Effect
from reference_coordinator.classic.events import (
    NO_CHOICES,
    CommitReceived,
    ConfigureReceived,
    DeleteReceived,
    DescribeReceived,
    Event,
    Expired,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Loaded,
    LoadStarted,
    RecordWritten,
    RequestsEnabled,
    SyncReceived,
    TimerFired,
    Unloaded,
)
from reference_coordinator.classic.group_config import configure, settle
from reference_coordinator.classic.heartbeat import heartbeat
from reference_coordinator.classic.join_group import join
from reference_coordinator.classic.leave_group import leave
from reference_coordinator.classic.loading import load, load_started, requests_enabled, unload
from reference_coordinator.classic.offset_commit import commit
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.record_writes import record_written
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.sync_group import sync
from reference_coordinator.classic.timers import timer_fired


class Step(Protocol):
    """The form of `step`, and of coordinators that break a rule of it.

    A Heartbeat or an OffsetCommit that leaves the group as it is looks only at what the group is
    (service, existence, state, generation), at its own member, and at the owner of its instance;
    its time, and that of a SyncGroup that changes nothing, is where deadlines are counted from.
    `replay.reactions` relies on that.
    """

    __name__: str

    def __call__(
        self, group: Group, event: Event, profile: Profile
    ) -> tuple[Group, tuple[Effect, ...]]:
        """Decide what one event does to a group."""


def step(group: Group, event: Event, profile: Profile) -> tuple[Group, tuple[Effect, ...]]:
    """Decide what one event does to a group.

    Pure: the same arguments give the same result; the group given is not changed.
    """
    context = Context(group, profile, event.at_ms, getattr(event, "choices", NO_CHOICES))
    _HANDLERS[type(event)](context, event)
    if context.group.is_unsettled:
        for held in settle(context):
            join(context, held)
    return context.group, tuple(context.effects)


_HANDLERS: dict[type[Event], Callable[[Context, Any], None]] = {
    HeartbeatReceived: heartbeat,
    CommitReceived: commit,
    SyncReceived: sync,
    JoinReceived: join,
    LeaveReceived: leave,
    DescribeReceived: describe,
    DeleteReceived: delete,
    ConfigureReceived: configure,
    TimerFired: timer_fired,
    RecordWritten: record_written,
    LoadStarted: lambda context, _: load_started(context),
    Loaded: load,
    RequestsEnabled: lambda context, _: requests_enabled(context),
    Unloaded: lambda context, _: unload(context),
    Expired: lambda context, _: remove_group(context),
}
