"""What an operator asks of a group, by IncrementalAlterConfigs: policies that Kafka never released.

The instance ids that a group is to have (pre-registration: KIP-345, future work): it waits until
it has all of them and no others, and rebalances once. And how many members work (`hot_standby`).
`docs/never-shipped.md` is the specification.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.group_configs import EXPECTED, SET, SETS, TARGET_SIZE, TIMEOUT
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context, refuse
from reference_coordinator.classic.effects import ConfigureResponse, Reason
from reference_coordinator.classic.events import WAIT_TIMER, ConfigureReceived, JoinReceived
from reference_coordinator.classic.hot_standby import take_places
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.rebalance import prepare
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    EMPTY,
    NO_CONFIG,
    STABLE,
    Group,
    GroupConfig,
)


def configure(context: Context, event: ConfigureReceived) -> None:
    """Handle IncrementalAlterConfigs; all its changes are made, or none."""
    error, config = unavailable(context.group), context.group.config
    try:
        for change in event.changes:
            config = changed(context, config, *change)
    except ValueError:
        error = error or Error.INVALID_CONFIG
    if error is None:
        context.create_group()
        if (record := context.group.stored) is not None:
            context.store(None, replace(record, config=config))
        go_by(context, config)
    context.answer(event.request, ConfigureResponse(error or NO_ERROR))


def changed(
    context: Context, config: GroupConfig, name: str, operation: int, value: str | None
) -> GroupConfig:
    """Return the configs with one set, or set back to its default. Raises ValueError."""
    if operation not in SETS or name not in configs_by(context.profile):
        raise ValueError(name)
    given = (value if operation == SET else None) or ""
    if name == EXPECTED:
        ids = frozenset(one.strip() for one in given.split(","))
        return replace(config, expected=ids - {""} or None)
    number = int(given) if given else None
    if number is not None and not 0 < number < 2**31:
        raise ValueError(name)
    if name == TARGET_SIZE:
        return replace(config, target_size=number)
    return replace(config, wait_ms=number or NO_CONFIG.wait_ms)


def configs_by(profile: Profile) -> Sequence[str]:
    """Return the names of the configs that a profile has."""
    awaits = (EXPECTED, TIMEOUT) if profile.awaits_expected_instances else ()
    return (*awaits, TARGET_SIZE) if profile.standbys_hold_no_partitions else awaits


def go_by(context: Context, config: GroupConfig) -> None:
    """Wait as configs say, from now on, or no more; owe a rebalance if others are to work."""
    group = context.group
    wanted = min(config.target_size or len(group.members), len(group.members))
    owes = group.owes_rebalance or group.workers != wanted
    context.change(config=config, owes_rebalance=owes)
    context.disarm(WAIT_TIMER)
    if config.expected is not None:
        context.arm(WAIT_TIMER, config.wait_ms)


def end_wait(context: Context) -> None:
    """Wait no more; the record of the next generation tells."""
    go_by(context, replace(context.group.config, expected=None))


def held_back(context: Context, event: JoinReceived, instance_id: str) -> bool:
    """Let a new static member wait for others, except where a rebalance begins anyway.

    A JoinGroup that the same instance sent before is fenced.
    """
    group = context.group
    awaited = instance_id in (group.config.expected or ())
    if not awaited or group.state not in (STABLE, COMPLETING_REBALANCE):
        return False
    if (before := group.held_back.get(instance_id)) is not None:
        context.answer(before.request, refuse("", Error.FENCED_INSTANCE_ID))
    # when it came does not count
    context.change(held_back={**group.held_back, instance_id: replace(event, at_ms=0.0)})
    return True


def gone_quietly(context: Context, before: Group) -> bool:
    """Tell whether no rebalance follows at once for those that were just removed.

    Either all were to leave, and one follows later, or standbys take their places. If nobody is
    left the group becomes Empty.
    """
    expected = before.config.expected
    if before.config is NO_CONFIG or before.state is not STABLE or not context.group.members:
        return False
    gone = [one for key, one in before.members.items() if key not in context.group.members]
    if not gone or expected is None:
        return bool(gone) and take_places(context, gone, before.leader)
    quiet = not any(one.group_instance_id in {None, *expected} for one in gone)
    context.change(owes_rebalance=quiet or before.owes_rebalance)
    return quiet


def settle(context: Context) -> Iterable[JoinReceived]:
    """End the wait if all are there, and rebalance once; return the joins that wait no more.

    A group that completes a rebalance becomes Stable first. One that is Empty need not wait.
    """
    group, expected = context.group, context.group.config.expected
    instances = group.static_ids.keys()
    if expected is not None and instances <= expected <= instances | group.held_back.keys():
        end_wait(context)
        expected = None
    may_go_on = group.state is EMPTY or (group.state is STABLE and expected is None)
    if not may_go_on or not (group.held_back or group.owes_rebalance):
        return ()
    context.change(held_back={}, owes_rebalance=False)
    if group.state is STABLE:
        prepare(context, Reason.GROUP_CONFIG)
    return group.held_back.values()
