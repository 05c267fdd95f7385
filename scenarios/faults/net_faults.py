"""The faults on the wire, `net.…`: partition, isolate, delay, drop-answers, hold, duplicate."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import DurationMs, PositiveMs
from scenarios.faults import net
from scenarios.faults.brokers import broker_checks
from scenarios.faults.declaration import About, Planned
from scenarios.problems import Path, Problem
from scenarios.targets import BrokerTarget, in_words

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

_SILENT = (
    "The connections stay open and nothing passes, as on a network that loses every packet. What "
    "was sent meanwhile passes when the fault is healed, unless its sender has closed the "
    "connection; what a client that gave up had sent is lost. "
)


class NetPartition(net.NetFault):
    """Parts members from brokers: nothing passes between them, on new connections either."""

    about: ClassVar[About] = About(
        hits="member",
        noun="partition",
        meaning="parted from brokers: nothing passed between them",
        targets=net.TARGETS,
        witness=net.PROBED + "The first is not answered while the fault lasts, and is afterwards; "
        "the second is answered at once. " + net.OWN,
        expects=_SILENT + net.LOST,
        undo=net.HEALED,
    )

    fault: Literal["net.partition"]
    brokers: BrokerTarget
    """The brokers on the other side, resolved when the fault fires."""
    way: net.Way = "both"
    """`to-broker` stops requests, `to-client` answers."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the targets exist."""
        yield from super().checks(experiment, path)
        yield from broker_checks(self.brokers, experiment, (*path, "brokers"))

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_rule(brokers=in_words(self.brokers, None), way=self.way)


class NetIsolate(net.NetFault):
    """Cuts members off from all brokers, on new connections too."""

    about: ClassVar[About] = About(
        hits="member",
        noun="isolation",
        meaning="cut off from all brokers: nothing passed",
        targets=net.TARGETS,
        witness=net.PROBED + "The first is not answered while the fault lasts, and is afterwards; "
        "the second is answered at once. " + net.OWN,
        expects=_SILENT + net.LOST,
        undo=net.HEALED,
    )

    fault: Literal["net.isolate"]
    way: net.Way = "both"
    """`to-broker` stops requests, `to-client` answers."""

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_rule(way=self.way)


class NetDelay(net.BetweenFault):
    """Delays what passes between members and brokers, without changing its order."""

    about: ClassVar[About] = About(
        hits="member",
        noun="delay",
        meaning="what it sent and got was delayed",
        targets=net.TARGETS,
        witness=net.PROBED
        + "The first takes at least as long as the latency less the jitter, each "
        "way, while the fault lasts, and the second less than half of that. " + net.OWN,
        expects=(
            "The coordinator sees each request later, and answers as ever. A delay of heartbeats "
            "below the session timeout costs nothing; a rebalance takes as much longer as the "
            "slowest member's JoinGroup and SyncGroup."
        ),
        undo=net.HEALED,
    )

    fault: Literal["net.delay"]
    latency_ms: PositiveMs
    """How much longer each request and each answer takes."""
    jitter_ms: DurationMs = 0
    """By how much the latency varies, up and down, decided by the run's seed."""
    way: net.Way = "both"
    """`to-broker` delays requests, `to-client` answers."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that the delay shows while it lasts."""
        yield from super().checks(experiment, path)
        if self.jitter_ms >= self.latency_ms:
            yield Problem(
                (*path, "jitter"), "leaves nothing of the latency; write less than the latency"
            )
        longest_ms = 2 * (self.latency_ms + self.jitter_ms)
        if self.for_ms < longest_ms:
            yield Problem(
                (*path, "for"),
                f"is too short to see a request delayed both ways; write {longest_ms}ms or more",
            )

    def planned(self) -> Planned:
        """Return its row of the plan."""
        jitter_ms = self.jitter_ms or None
        return self._planned_rule(latency_ms=self.latency_ms, jitter_ms=jitter_ms, way=self.way)


class NetDropAnswers(net.ChosenFault):
    """Lets requests arrive and loses their answers."""

    about: ClassVar[About] = About(
        hits="member",
        noun="answer drop",
        meaning="its requests arrived, and it never got the answers",
        targets=net.TARGETS,
        witness=(
            "The broker's own log has the request and its answer, and the tap's evidence says that "
            "the answer was not delivered."
        ),
        expects=(
            "The coordinator has acted on the request; the client does not know. A new dynamic "
            "member that lost the answer to its first JoinGroup joins anew and leaves a member id "
            "behind that nobody uses: from JoinGroup v4 on it waits for a session timeout and "
            "costs nothing (KIP-394). A static member is found by its instance id (KIP-345)."
        ),
        undo=net.HEALED,
    )

    fault: Literal["net.drop-answers"]
    then: Literal["close", "silence"] = "close"
    """What becomes of the connection: it ends, or stays open without any further answer."""

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_rule(then=self.then)


class NetHold(net.BetweenFault):
    """Holds requests of an API, and what follows them on their connection, until healed."""

    about: ClassVar[About] = About(
        hits="member",
        noun="hold",
        meaning="its requests waited in the tap",
        targets=net.TARGETS,
        witness=(
            "The tap has requests that wait, and the brokers' own logs show none of them while the "
            "fault lasts, but afterwards, or their connection has ended."
        ),
        expects=(
            "The coordinator sees the request when it is let go, if the client still waits for it. "
            "Its timers run meanwhile: sessions, the rebalance timeout, the pending sync."
        ),
        undo=net.HEALED,
    )

    fault: Literal["net.hold"]
    apis: net.Apis
    """The requests that are held, such as `[SYNC_GROUP]`."""

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_rule(apis=list(self.apis))


class NetDuplicate(net.ChosenFault):
    """Sends requests twice; the client gets the answer to the first."""

    about: ClassVar[About] = About(
        hits="member",
        noun="request duplication",
        meaning="its requests arrived twice",
        targets=net.TARGETS,
        witness="The broker's own log has the request twice, on one connection.",
        expects=(
            "The broker takes the second when it has answered the first. A heartbeat, a commit or "
            "a SyncGroup gets the same answer again. A JoinGroup of a member of the generation "
            "does, too, where it changes nothing; that of a new dynamic member without an id is "
            "another new member."
        ),
        undo=net.HEALED,
    )

    fault: Literal["net.duplicate"]

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_rule()
