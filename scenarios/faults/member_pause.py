"""`member.pause`: members freeze; they neither poll nor send heartbeats."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.faults import members
from scenarios.faults.declaration import About, Planned, seconds
from scenarios.problems import Path, Problem
from scenarios.targets import LeaderMemberOf

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class MemberPause(members.MemberAway):
    """Freezes the targets, as a long garbage collection or a suspended machine does.

    No thread of the client runs: it neither polls nor sends heartbeats, and its sockets stay open.
    """

    about: ClassVar[About] = About(
        hits="member",
        noun="pause",
        meaning="frozen: it neither polled nor sent heartbeats, and its sockets stayed open",
        targets=members.TARGETS
        + " Each needs a client that can be frozen alone: any but `librdkafka`.",
        witness=members.SILENT + members.BACK,
        expects=(
            "A pause within the session timeout costs nothing. After it the coordinator removes "
            "the member, static or dynamic, which costs a rebalance. When it goes on, its next "
            "request is answered UNKNOWN_MEMBER_ID, and its JoinGroup costs another. Within the "
            "session a rebalance of the group waits for the frozen member, up to the rebalance "
            "timeout."
        ),
        undo=(
            "Lets its processes go on (SIGCONT), over the control channel. If the load process is "
            "gone, its members are gone too, and nothing is left to undo."
        ),
    )

    fault: Literal["member.pause"]

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that each can be frozen alone."""
        yield from super().checks(experiment, path)
        shared = {m.name: m.group for m in experiment.members() if m.client == "librdkafka"}
        if isinstance(self.target, LeaderMemberOf):
            led = self.target.group
            hit = [name for name, group in shared.items() if group == led]
        else:
            hit = [m.name for m in self.known_targets(experiment) if m.name in shared]
        if hit:
            yield Problem(
                (*path, "target"),
                f"{hit[0]} shares the process of the load, which cannot be frozen for one member; "
                "write client: librdkafka-process, for example, for its members",
            )

    def planned(self) -> Planned:
        """Return its row of the plan."""
        undo = f"resume after {seconds(self.down_for_ms)}"
        return self._planned(undo, down_for_ms=self.down_for_ms)
