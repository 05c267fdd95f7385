"""`member.slow-poll`: the application of members polls no more, beyond `max.poll.interval`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs, format_ms
from scenarios.faults import members
from scenarios.faults.declaration import About, Planned, seconds
from scenarios.problems import Path, Problem

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

NOTICED_MS = 1_500
"""How long after `max.poll.interval.ms` a client may take to leave: librdkafka looks twice a
second, the Java client with every heartbeat; the last request is on its way then."""


class MemberSlowPoll(members.MemberFault):
    """Lets the application of the targets poll no more, as slow processing does.

    The client's own threads go on: they send heartbeats until `max_poll_interval` has passed since
    the last poll. Then they give up the membership.
    """

    about: ClassVar[About] = About(
        hits="member",
        noun="slow poll",
        meaning="its application polled no more, until max.poll.interval had passed",
        targets=members.TARGETS,
        witness=(
            "`group.log` shows a LeaveGroup of a dynamic member, or no request of a static one for "
            "two heartbeat intervals, although its coordinator completes other requests or answers "
            "one of ours. " + members.BACK
        ),
        expects=(
            "A dynamic member sends LeaveGroup once `max_poll_interval` has passed, which costs a "
            "rebalance. A static one sends no more heartbeats (KIP-345): it keeps its partitions "
            "until its session timeout, which costs a rebalance then. Its JoinGroup at the next "
            "poll costs another, but for a static member within its session timeout."
        ),
        undo=(
            "Lets the application poll, over the control channel. If the load process is gone, its "
            "members are gone too, and nothing is left to undo."
        ),
    )

    fault: Literal["member.slow-poll"]
    lasts_ms: PositiveMs
    """How long the application does not poll. A member of another client than librdkafka blocks as
    it prints what it polled, and nobody reads that: it needs records, and some polls more."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that the clients have the time to notice it."""
        yield from super().checks(experiment, path)
        for group in experiment.workload.groups:
            if group.name not in self.groups_hit(experiment):
                continue
            least_ms = group.max_poll_interval_ms + NOTICED_MS + 2 * group.heartbeat_interval_ms
            if self.lasts_ms < least_ms:
                yield Problem(
                    (*path, "lasts"),
                    f"{format_ms(self.lasts_ms)} is too short for the clients of group "
                    f"'{group.name}' to leave, whose max_poll_interval is "
                    f"{format_ms(group.max_poll_interval_ms)}; write {format_ms(least_ms)} or more",
                )

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned(f"poll again after {seconds(self.lasts_ms)}", lasts_ms=self.lasts_ms)
