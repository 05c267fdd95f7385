"""Which coordinator lines are compared with those that are due, and in which of their fields.

A template's lines about one subject differ by their order. What else a line says is
compared field by field, where the line has the field and it is known what it has to be.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from operator import eq

from reference_coordinator.replay import Says

UNNAMED = "-?"  # stands in the placeholder of a member id that no response names
UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Stands behind the client's id, or the instance's, in a member id."""
NOT_GIVEN = ("", "null", "None", "Some(null)", "not provided")
"""How coordinators write that a client gave no instance id, or no reason."""
HOST = re.compile(", clientHost=[^,]*,")
ELEMENTS = re.compile(r"^\w*[\[(]|[\])]$")
"""What Java and Scala write around the elements of a set."""
OPERATIONS = {
    "JOIN_GROUP": ("join-group",),
    "SYNC_GROUP": ("sync-group",),
    "HEARTBEAT": ("heartbeat",),
    "LEAVE_GROUP": ("leave-group",),
    # Scala until 2.6 and later; Java calls every commit so
    "OFFSET_COMMIT": ("commit-offsets", "offset-commit", "txn-offset-commit"),
}  # what lines call the APIs; seen on 2.6.0, 3.9.1 and 4.3.0


def _given(due: str, observed: str) -> bool:
    """Compare what a client may have given: an instance id, or a reason."""
    return observed in (due, f"Some({due})") if due else observed in NOT_GIVEN


def _elements(due: str, observed: str) -> bool:
    """Compare sets of ids, in no order."""
    return Counter(due.split(", ")) == Counter(ELEMENTS.sub("", observed).split(", "))


def _without_host(due: str, observed: str) -> bool:
    """Compare what Scala writes of a member, but for the client's host, which no request has."""
    return due == HOST.sub(", clientHost=,", observed)


FENCED, BEGUN = "fenced", "preparing"
SUBJECTS = {
    "static_replaced": "instance", BEGUN: "generation",
    **dict.fromkeys(
        ("absent_dynamic_removed", "unsynced_removed", "nobody_rejoined", "group_loaded"), ""
    ),
}  # fmt: skip
"""The columns that tell lines of a template apart; of the others it is `member`."""
FIELDS = {
    "static_added": "state instance", "static_replaced": "state member",
    "dynamic_given_id": "state", "dynamic_added": "state", "member_added": "state",
    "pending_joins": "state", "left": "client_reason instance more",
    "pending_left": "client_reason", "session_expired": "", "pending_expired": "",
    "absent_dynamic_removed": "removed", "unsynced_removed": "removed", "nobody_rejoined": "",
    "group_loaded": "members generation", "member_loaded": "", FENCED: "instance operation",
    "unexpected_rejoin": "state", "dead": "state",  # no request finds a group in such a state
    BEGUN: "",  # see FIELDS_BY_REASON
}  # fmt: skip
"""The templates that are compared, each with what its lines say beside their subject."""
FIELDS_BY_REASON = {
    **dict.fromkeys(
        ("new_member", "static_replaced", "protocol_change"), "client_reason instance member"
    ),
    **dict.fromkeys(("member_metadata", "leader_rejoin"), "state client_reason member"),
    "session_expired": "member", "leave": "client_reason member", "pending_sync": "removed",
    "assignment_error": "",  # the leader whose write failed may be gone by now
    "over_capacity": "",
}  # fmt: skip
ALIKE: Mapping[str, Callable[[str, str], bool]] = {
    "instance": _given, "client_reason": _given, "removed": _elements, "more": _without_host,
    "operation": lambda api, observed: observed in OPERATIONS[api],
}  # fmt: skip
"""How fields are compared that are not the same text in every release."""


def differences(
    kind: str, due: Says, observed: Mapping[str, str], *, names_batch: bool
) -> list[str]:
    """List in words the fields that differ, of those that a line of a template has.

    A "Preparing" line that gives another reason is no difference here: its rebalance has the wrong
    reason. `names_batch`: it lists all members of a LeaveGroup, with the ids of the request.
    """
    expected, fields = dict(due), FIELDS[kind]
    if kind == BEGUN:
        if (reason := expected["reason"]) != observed.get("reason"):
            return []
        fields, sent = FIELDS_BY_REASON[reason], expected.get("members_sent")
        if sent is not None and names_batch:
            expected["member"] = sent
        else:
            observed = {"client_reason": "", **observed}  # none is printed
            if sent is not None and not observed["member"] and "" in sent.split(", "):
                del expected["member"]  # before 3.0 the id is that of the request, too
        if fields == "removed":
            expected["removed"] = expected["member"]
            observed = {**observed, "removed": observed["member"]}
    return [
        f"{name} {observed[name]!r} instead of {expected[name]!r}"
        for name in fields.split()
        if name in expected
        and name in observed
        and UNNAMED not in expected[name]
        and not ALIKE.get(name, eq)(expected[name], observed[name])
    ]
