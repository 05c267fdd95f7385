"""`member.kill`: members end as in a crash, without LeaveGroup, and start again."""

from typing import ClassVar, Literal

from scenarios.faults import members
from scenarios.faults.declaration import About, Planned


class MemberKill(members.MemberAway):
    """Ends the targets as a crash does, without LeaveGroup, and starts them again."""

    about: ClassVar[About] = About(
        hits="member",
        noun="kill",
        meaning="ended as by a crash, without LeaveGroup, then started afresh",
        targets=members.TARGETS,
        witness=(
            members.SILENT + "It shows no LeaveGroup of it, and this machine's kernel no longer "
            "has the connection of its last request. " + members.REJOINED
        ),
        expects=(
            "A static member that rejoins within its session timeout costs no rebalance from "
            "Stable (KIP-345). A dynamic member joins as a new member, which costs a rebalance; "
            "its old member id stays in the group until its session timeout, or until it is "
            "missing at the end of that rebalance. A killed process looks like a closed "
            "one if it is static, since neither sends LeaveGroup; the witness says so."
        ),
        undo=(
            "Starts a fresh consumer over the control channel. If the load process is gone, its "
            "members are gone too, and nothing is left to undo."
        ),
    )

    fault: Literal["member.kill"]

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_restart()
