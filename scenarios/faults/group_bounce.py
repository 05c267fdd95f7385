"""`group.bounce`: a rolling restart of a group, one `member.restart` after the other, or waves."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs
from scenarios.faults import members
from scenarios.faults.declaration import About
from scenarios.faults.member_restart import MemberRestart
from scenarios.fields import PositiveCount
from scenarios.problems import Path, Problem
from scenarios.targets import LeaderMemberOf, MemberTarget

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class GroupBounce(members.MemberAway):
    """Restarts the targets one after the other, or in waves of `at_once`."""

    about: ClassVar[About] = About(
        hits="member",
        noun="rolling bounce",
        meaning="restarted one after the other, or so many at once",
        targets=members.TARGETS + " The seed of the run decides the order.",
        witness="As `member.restart`, for each restart.",
        expects="As `member.restart`, for each restart: a rolling bounce of static members within "
        "their session timeout costs no rebalance.",
        undo="As `member.restart`.",
    )

    fault: Literal["group.bounce"]
    every_ms: PositiveMs
    """From the start of one member's restart, or one wave's, to the start of the next."""
    at_once: PositiveCount | None = None
    """How many members restart together, as one wave; one by default."""
    repeat: PositiveCount | None = None
    """How many rounds through all targets there are; one by default."""
    becomes: members.Identity | None = None
    """The identity that they restart with; by default the one they had."""

    @property
    def is_series(self) -> bool:
        """Whether it becomes several faults of the plan: it does."""
        return True

    @property
    def makes_static(self) -> bool:
        """Whether `becomes` is a static identity."""
        return isinstance(self.becomes, members.Static)

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that each gets an instance id of its own."""
        yield from super().checks(experiment, path)
        yield from members.shared_identity(self, self.becomes, experiment, path)
        if self.at_once is not None and isinstance(self.target, LeaderMemberOf):
            yield Problem((*path, "at_once"), "a group has one leader; remove at_once")

    def restart(self, number: int, target: MemberTarget) -> MemberRestart:
        """Return the restart of the bounce's wave of that number, from 0."""
        return MemberRestart.model_construct(
            fault="member.restart",
            at_ms=self.at_ms + number * self.every_ms,
            target=target,
            group=self.group,
            allow_empty=self.allow_empty,
            down_for_ms=self.down_for_ms,
            becomes=self.becomes,
        )
