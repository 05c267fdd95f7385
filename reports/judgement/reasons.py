"""Why rebalances begin, and what coordinators log, in words, by the names that tables have."""

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
LINES: Mapping[str, str] = {
    "static_added": "a static member joined",
    "static_replaced": "a static member rejoined with a new member id",
    "dynamic_given_id": "a dynamic member was given an id to join with",
    "dynamic_added": "a dynamic member joined",
    "member_added": "a member joined",
    "pending_joins": "a member joined with the id that it was given",
    "left": "a member left",
    "pending_left": "a member left that had not joined yet",
    "session_expired": "a member's session expired",
    "pending_expired": "a member did not join with the id that it was given",
    "absent_dynamic_removed": "dynamic members did not rejoin in time and were removed",
    "unsynced_removed": "members did not send SyncGroup in time and were removed",
    "nobody_rejoined": "nobody rejoined",
    "group_loaded": "the group was loaded",
    "member_loaded": "a member was loaded",
    "fenced": "a member was fenced",
    "unexpected_rejoin": "a member rejoined in an unexpected state",
    "dead": "a member joined a dead group",
    "preparing": "a rebalance began",
}
"""What lines about a group say, by their templates."""
