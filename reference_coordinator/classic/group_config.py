"""What an operator asks of a group, by IncrementalAlterConfigs: policies that Kafka never released.

The instance ids that a group is to have (pre-registration: KIP-345, future work). It waits until it
has all of them and no others, and rebalances once. `docs/never-shipped.md` is the specification.
"""

from dataclasses import replace

from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.group_configs import EXPECTED, SET, SETS, TIMEOUT
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import ConfigureResponse, Reason
from reference_coordinator.classic.events import WAIT_TIMER, ConfigureReceived
from reference_coordinator.classic.join_group import create_group, join
from reference_coordinator.classic.rebalance import prepare
from reference_coordinator.classic.state import EMPTY, NO_CONFIG, STABLE, GroupConfig


def configure(context: Context, event: ConfigureReceived) -> None:
    """Handle IncrementalAlterConfigs; all its changes are made, or none."""
    error, config = unavailable(context.group), context.group.config
    try:
        for change in event.changes:
            config = changed(context, config, *change)
    except ValueError:
        error = error or Error.INVALID_CONFIG
    if error is None:
        create_group(context)
        context.change(config=config)
        if (record := context.group.stored) is not None:
            context.store(None, replace(record, config=config))
        await_expected(context)
    context.answer(event.request, ConfigureResponse(error or NO_ERROR))


def changed(
    context: Context, config: GroupConfig, name: str, operation: int, value: str | None
) -> GroupConfig:
    """Return the configs with one set, or set back to its default. Raises ValueError."""
    if operation not in SETS or not context.profile.awaits_expected_instances:
        raise ValueError(name)
    given = value if operation == SET else None
    if name == EXPECTED:
        ids = frozenset(one.strip() for one in (given or "").split(","))
        return replace(config, expected=ids - {""} or None)
    if name == TIMEOUT and 0 < (wait_ms := int(given or NO_CONFIG.wait_ms)) < 2**31:
        return replace(config, wait_ms=wait_ms)
    raise ValueError(name)


def await_expected(context: Context) -> None:
    """Start to wait, with the whole time-out; or stop."""
    if context.group.config.expected is None:
        context.disarm(WAIT_TIMER)
    else:
        context.arm(WAIT_TIMER, context.group.config.wait_ms)


def end_wait(context: Context) -> None:
    """Wait no more; the record of the next generation tells."""
    context.change(config=replace(context.group.config, expected=None))
    context.disarm(WAIT_TIMER)


def settle(context: Context) -> None:
    """End the wait if all are there, and rebalance once for those that came and went.

    A group that completes a rebalance becomes Stable first. One that is Empty need not wait.
    """
    group, expected = context.group, context.group.config.expected
    instances = group.static_ids.keys()
    if expected is not None and instances <= expected <= instances | group.held_back.keys():
        end_wait(context)
    waits = context.group.config.expected is not None
    if group.state is not EMPTY and (waits or group.state is not STABLE):
        return
    if group.held_back or group.gone_quietly:
        context.change(held_back={}, gone_quietly=False)
        if group.state is STABLE:
            prepare(context, Reason.BATCH)
        for event in group.held_back.values():
            join(context, event)
