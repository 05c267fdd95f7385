"""What a line says beyond its subject: the fields that are due, compared with those observed."""

import re
from collections import Counter
from collections.abc import Callable, Mapping

from reference_coordinator.replay import Says

UNNAMED = "-?"
"""Stands in the placeholder of a member id that no response names."""
UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Stands behind the client's id, or the instance's, in a member id."""
NOT_GIVEN = ("", "null", "None", "Some(null)", "not provided")
"""How coordinators write that a client gave no instance id, or no reason."""
HOST = re.compile(", clientHost=[^,]*,")
ELEMENTS = re.compile(r"^\w*[\[(]|[\])]$")
"""What Java and Scala write around the elements of a set."""


def differences(due: Says, observed: Mapping[str, str], *, names_batch: bool) -> list[str]:
    """List in words the fields that differ, of those that the line has.

    A "Preparing" line that gives another reason is no difference here: its rebalance has the wrong
    reason. `names_batch`: it lists all members of a LeaveGroup, with the ids of the request.
    """
    expected = dict(due)
    if (reason := expected.pop("reason", None)) != observed.get("reason"):
        return []
    sent = expected.pop("members_sent", None)
    if sent is not None and names_batch:
        expected["member"] = sent
    elif sent is not None and not observed["member"] and "" in sent.split(", "):
        del expected["member"]  # before 3.0 the id is that of the request, too
    if reason == "assignment_error":
        expected.pop("member", None)  # the leader whose write failed may be gone by now
    if reason is not None and not (names_batch and reason == "leave"):
        observed = {"client_reason": "", **observed}  # none is printed
    if reason == "pending_sync":
        expected["removed"] = expected.pop("member")
        observed = {**observed, "removed": observed["member"]}
    return [
        f"{name} {observed[name]!r} instead of {value!r}"
        for name, value in expected.items()
        if name in observed
        and UNNAMED not in value
        and not ALIKE.get(name, _same)(value, observed[name])
    ]


def _same(expected: str, observed: str) -> bool:
    return expected == observed


def _given(expected: str, observed: str) -> bool:
    """Compare what a client may have given: an instance id, or a reason."""
    if not expected:
        return observed in NOT_GIVEN
    return observed in (expected, f"Some({expected})")


def _elements(expected: str, observed: str) -> bool:
    """Compare sets of ids, in no order."""
    return Counter(expected.split(", ")) == Counter(ELEMENTS.sub("", observed).split(", "))


def _without_host(expected: str, observed: str) -> bool:
    """Compare what Scala writes of a member, but for the client's host, which no request has."""
    return expected == HOST.sub(", clientHost=,", observed)


ALIKE: Mapping[str, Callable[[str, str], bool]] = {
    "instance": _given, "client_reason": _given, "removed": _elements,
    "more": _without_host,
}  # fmt: skip
"""How fields are compared that are not the same text in every release."""
