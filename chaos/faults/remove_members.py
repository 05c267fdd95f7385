"""`group.remove-members`: one LeaveGroup removes static members by their instance ids.

The rebalances that follow are for the comparison to judge.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from chaos.errors import TargetError
from chaos.faults.context import FaultContext
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding
from chaos.journal import now_ms
from chaos.removal import Removal, error_name, remove_members, static_members
from chaos.witness import Request, Witness
from kafka_protocol.errors import Error
from scenarios import faults as declared

_LOGGED_WITHIN_MS = 5_000
"""A broker logs a request just after it has sent the response."""


class RemoveMembers:
    """Sends one LeaveGroup for all; the log of the broker that answered is the witness.

    `client_id` is unique to this fault. `remove` sends the request, given instance ids.
    """

    kind: Literal["one-shot"] = "one-shot"
    details: Mapping[str, Any]

    def __init__(
        self,
        group: str,
        instances: Sequence[str],
        client_id: str,
        remove: Callable[[Sequence[str]], Removal],
        witness: Witness,
    ) -> None:
        self.target = ", ".join(instances)
        self.group = group
        self.details = {"instances": list(instances)}
        self._instances = tuple(instances)
        self._client_id = client_id
        self._remove = remove
        self._witness = witness
        self._sent_ms = 0
        self._answer: int = Error.NONE

    def inject(self) -> None:
        """Send the request; it is answered when this returns."""
        self._sent_ms = now_ms()
        self._answer = self._remove(self._instances).error

    def verify(self, stop: threading.Event) -> Finding:
        """Return whether a broker was asked to remove exactly these, and what it answered."""
        if self._answer != Error.NONE:
            return Finding(False, f"LEAVE_GROUP was answered {error_name(self._answer)}")
        missing = f"no LEAVE_GROUP of {self._client_id} answered NONE in any group.log"
        found = await_finding(self._look, _LOGGED_WITHIN_MS, missing, stop)
        request = self._request()
        if request is None or not request.error_code:
            return found
        refusal = f"one was answered {error_name(request.error_code)} ({request.place})"
        return replace(found, evidence=f"{found.evidence}; {refusal}")

    def _look(self) -> Finding | None:
        self._witness.poll()
        request = self._request()
        if request is None or request.error_code != Error.NONE:
            return None
        answers = ", ".join(f"{one}: {_name(code)}" for one, code in request.removed) or "nobody"
        named = sorted(one for one, _ in request.removed)
        return Finding(
            request.group == self.group and named == sorted(set(self._instances)),
            f"LEAVE_GROUP of {self._client_id} answered NONE ({request.place}), {answers}",
        )

    def _request(self) -> Request | None:
        """Return the request from the latest line about it."""
        return self._witness.left_since(self._client_id, self._sent_ms)


def _name(code: int) -> str:
    return "NONE" if code == Error.NONE else error_name(code)


def make(
    fault_id: str, fault: declared.RemoveMembers, context: FaultContext
) -> tuple[RemoveMembers]:
    """Return the removal. Raises TargetError if `all` static members are to leave and none is."""
    bootstrap, group = context.cluster.bootstrap, fault.group
    config = context.cluster.client_properties
    instances: Sequence[str]
    if fault.instances == "all":
        instances = context.unless_stopped(lambda: static_members(bootstrap, group, config))
    else:
        instances = fault.instances
    if not instances:
        raise TargetError(f"group {group} has no static members now; give it some, or name ids")
    client_id = f"groupquake-{fault_id}"

    def remove(ids: Sequence[str]) -> Removal:
        send = partial(remove_members, bootstrap, group, ids, client_id=client_id, config=config)
        return context.unless_stopped(send)

    return (RemoveMembers(group, instances, client_id, remove, context.witness),)
