"""`member.duplicate-instance`: a second process joins under the instance id of a member.

The coordinator lets the newer process in and answers the older one FENCED_INSTANCE_ID (KIP-345).
"""

from chaos.faults.interface import Finding
from chaos.faults.member_evidence import MemberEvidence
from chaos.faults.one_member import OneMember, unless_gone
from chaos.journal import now_ms
from chaos.members import DUPLICATE, Members


class DuplicateInstance(OneMember):
    """Starts and ends one duplicate over the control channel; the brokers' logs are the witness."""

    UNDO = "end-duplicate"
    GONE = "nothing to undo: the load process is gone, its members and their duplicates with it"

    def __init__(
        self, member: str, group: str, lasts_ms: int, evidence: MemberEvidence, members: Members
    ) -> None:
        super().__init__(member, group, lasts_ms, evidence, members)
        self.details = {"duplicate": member + DUPLICATE}
        self._duplicate = member + DUPLICATE
        self._witness = evidence.witness

    def inject(self) -> None:
        """Start the duplicate; it has not joined yet when this returns."""
        self._began_ms = now_ms()
        self._duplicate = self._members.duplicate(self.target)

    def verify(self) -> Finding:
        """Return whether the brokers let the duplicate in and fenced the member."""
        self._witness.poll()
        joined = self._witness.joined_since(self._duplicate, self._began_ms)
        if joined is None:
            return Finding(False, f"no JOIN_GROUP of {self._duplicate} was answered NONE")
        came = f"JOIN_GROUP of {self._duplicate} answered NONE ({joined.place})"
        fenced = self._witness.fenced_since(self.target, self._began_ms)
        if fenced is None or fenced.instance_id != joined.instance_id:
            return Finding(
                False,
                f"{came}, but no request of {self.target} as {joined.instance_id} was answered"
                " FENCED_INSTANCE_ID",
            )
        return Finding(
            True, f"{came}, {fenced.api} of {self.target} FENCED_INSTANCE_ID ({fenced.place})"
        )

    def heal(self) -> str:
        """End the duplicate and start the member; it has not joined yet when this returns."""
        self._healing_ms = now_ms()
        return unless_gone(self._end_duplicate, self.GONE)

    def _end_duplicate(self) -> str:
        self._members.end_duplicate(self.target)
        self._members.stop(self.target)  # it would be fenced by the next process, if it is not yet
        self._members.start(self.target)
        return "the duplicate ended, the member started afresh over the control channel"
