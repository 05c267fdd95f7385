"""Why rebalances begin, in words, by the names that tables have."""

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "new_member": "a new member joined",
    "leader_rejoin": "the leader rejoined",
    "join_reason": "a member rejoined for a reason that demands it (KIP-423)",
    "member_metadata": "a member rejoined with other metadata",
    "static_replaced": "a static member rejoined with a new member id",
    "protocol_change": "a static member rejoined and changed the group's protocol",
    "session_expired": "a member's session expired",
    "leave": "a member left",
    "pending_sync": "a member did not send SyncGroup in time",
    "over_capacity": "the loaded group was larger than group.max.size",
    "assignment_error": "the assignment could not be stored",
    "group_config": "a config of the group asked for it",
    "": "the broker wrote no reason",
}
