"""`group.remove-members`: static members are taken out of their group by their instance ids.

What comes of it, at once or later, is for the comparison to judge.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding
from chaos.journal import now_ms
from chaos.removal import Removal, error_name
from chaos.witness import Request, Witness
from kafka_protocol.errors import Error

_LOGGED_WITHIN_MS = 5_000
"""A broker logs a request just after its answer has gone out."""


class RemoveMembers:
    """Sends one LeaveGroup for all; the log of the broker that answered is the witness.

    `client_id` belongs to this fault alone. `remove` sends the request, given instance ids.
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
        """Tell whether a broker was asked to remove exactly these, and what it answered."""
        if self._answer != Error.NONE:
            return Finding(False, f"LEAVE_GROUP was answered {error_name(self._answer)}")
        missing = f"no LEAVE_GROUP of {self._client_id} answered NONE in any group.log"
        found = await_finding(self._look, _LOGGED_WITHIN_MS, missing, stop)
        asked = self._asked()
        if asked is None or not asked.error_code:
            return found
        refusal = f"one was answered {error_name(asked.error_code)} ({asked.place})"
        return replace(found, evidence=f"{found.evidence}; {refusal}")

    def _look(self) -> Finding | None:
        self._witness.poll()
        asked = self._asked()
        if asked is None or asked.error_code != Error.NONE:
            return None
        answers = ", ".join(f"{one}: {_name(code)}" for one, code in asked.removed) or "nobody"
        named = sorted(one for one, _ in asked.removed)
        return Finding(
            asked.group == self.group and named == sorted(set(self._instances)),
            f"LEAVE_GROUP of {self._client_id} answered NONE ({asked.place}), {answers}",
        )

    def _asked(self) -> Request | None:
        """Return the request as the latest line about it tells."""
        return self._witness.left_since(self._client_id, self._sent_ms)


def _name(code: int) -> str:
    return "NONE" if code == Error.NONE else error_name(code)
