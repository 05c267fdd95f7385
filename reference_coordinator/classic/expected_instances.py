"""The wait for a batch: who is held back, and who goes without a rebalance (KIP-345, future work).

Only of a group whose operator has named the instance ids that it is to have (`group_config`).
"""

from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.context import Context, refuse
from reference_coordinator.classic.events import JoinReceived
from reference_coordinator.classic.state import COMPLETING_REBALANCE, STABLE, Group


def is_held_back(group: Group, instance_id: str) -> bool:
    """Tell whether a new static member waits for others; not where a rebalance begins anyway."""
    expected = group.config.expected or ()
    return instance_id in expected and group.state in (STABLE, COMPLETING_REBALANCE)


def hold_back(context: Context, event: JoinReceived, instance_id: str) -> None:
    """Let a JoinGroup wait; one that the same instance sent before is fenced."""
    held = dict(context.group.held_back)
    if (before := held.pop(instance_id, None)) is not None:
        context.answer(before.request, refuse("", Error.FENCED_INSTANCE_ID))
    held[instance_id] = replace(event, at_ms=0.0)  # when it came does not count
    context.change(held_back=held)


def goes_quietly(context: Context, before: Group) -> bool:
    """Tell whether those that were just removed all were to leave: one rebalance follows later.

    Not the last members: their group becomes Empty.
    """
    expected = before.config.expected
    if expected is None or before.state is not STABLE or not context.group.members:
        return False
    gone = [one for key, one in before.members.items() if key not in context.group.members]
    quiet = bool(gone) and not any(one.group_instance_id in {None, *expected} for one in gone)
    context.change(gone_quietly=quiet or before.gone_quietly)
    return quiet
