"""Faults on the wire between members and brokers: each is a rule of the tap for a member.

The tap's rule table is the injector. Witnesses are: answers that a connection of the runner's own
gets through the tap, or does not; the brokers' own logs; and the lines in which the tap's
connections write what they delivered.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

from pydantic import Field, PrivateAttr

from kafka_protocol.apis import GroupApi
from kafka_protocol.errors import CODES
from scenarios import timing
from scenarios.durations import DurationMs, PositiveMs, now_ms
from scenarios.faults.base import Finding, Hit, grouped
from scenarios.faults.targeted import MemberFault, broker_checks
from scenarios.fields import Count, PositiveCount
from scenarios.problems import Path, Problem
from scenarios.setup import Setup
from scenarios.targets import BrokerTarget

if TYPE_CHECKING:
    from chaos.broker_probe import Question
    from chaos.fault_context import FaultContext
    from chaos.wire_rules import WireRule

Way = Literal["both", "to-broker", "to-client"]
Api = Literal[
    GroupApi, "OFFSET_FETCH", "FIND_COORDINATOR", "METADATA", "FETCH", "LIST_OFFSETS"
]  # fmt: skip
Apis = Annotated[tuple[Api, ...], Field(min_length=1, max_length=len(get_args(Api)))]
CoordinatorApi = Literal[GroupApi, "OFFSET_FETCH", "FIND_COORDINATOR"]
CoordinatorApis = Annotated[
    tuple[CoordinatorApi, ...], Field(min_length=1, max_length=len(get_args(CoordinatorApi)))
]


if TYPE_CHECKING:
    ErrorName = str
else:
    ErrorName = Literal[tuple(name for name, code in CODES.items() if code)]
Share = Annotated[float, Field(strict=True, gt=0.0, le=1.0, allow_inf_nan=False)]


class NetFault(MemberFault):
    """What the faults on the wire have in common: a rule of the tap for each member.

    The keys of such a fault are those of its rule.
    """

    needs = "tap"
    undo_name = "end-tap-rule"
    undo_words = "remove the rule after {}"
    action: ClassVar[str]
    """What the tap does."""
    excuses = True

    for_ms: PositiveMs
    """How long the rule is in force."""

    _rule: "WireRule"

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the targets exist."""
        yield from super().checks(experiment, path)
        brokers = getattr(self, "brokers", None)
        if brokers is not None:
            yield from broker_checks(brokers, experiment, (*path, "brokers"))

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the members that it hits now. Raises ChaosError without a tap."""
        tap, brokers = context.tap_for(self.fault), getattr(self, "brokers", None)
        undo = {"do": self.undo_name, "pid": tap.process_id, "started_at_ms": tap.started_at_ms}
        members = self._targets(context)
        nodes = [] if brokers is None else list(context.brokers_at(brokers))
        for one in members:
            # `members` are those that no other fault may hit meanwhile: a rule goes beside any
            yield Hit(one.name, one.group, {"brokers": nodes, "members": []}, undo)

    def prepare(self) -> None:
        """Make the rule for the member."""
        keys = {name: getattr(self, name) for name in _RULE_KEYS if hasattr(self, name)}
        nodes = tuple(self._hit.details["brokers"]) or None
        self._rule = self._context.wire_rule(self.action, self._hit.target, nodes, keys)

    def inject(self) -> None:
        """Put the rule in force."""
        self._hit.details["rule"] = self._rule.put()

    def heal(self) -> str:
        """Remove the rule; what it held passes."""
        return self._rule.remove()

    def _shown_for_member(self, evidence: str, asked: int) -> Finding:
        """Return what probes showed, which counts if the member's own requests were hit, too.

        `asked` is how many probes were hit, which carry the member's name: they would pass for a
        member that does not.
        """
        own = self._rule.hits() - asked
        if own > 0:
            return Finding(True, f"{evidence}; {own} of its own requests were hit")
        return Finding(
            False,
            f"no request of {self._hit.target} itself was hit: it sent none, or its client.id is"
            " another",
        )


_RULE_KEYS = (
    "way", "latency_ms", "jitter_ms", "apis", "after", "count", "probability", "then", "error"
)  # fmt: skip


class Parted(NetFault):
    """A fault in which a request gets no answer, and one afterwards."""

    action = "partition"

    _asked: "dict[int, Question]" = PrivateAttr(default_factory=dict)

    def inject(self) -> None:
        """Put the rule in force, and send one request to each broker."""
        super().inject()
        self._ask()

    def _ask(self) -> None:
        self._asked = {it: self._rule.ask(it, self._hit.target) for it in self._rule.probed}

    def verify(self) -> Finding:
        """Return whether none is answered though others pass, nor what the member itself sent."""
        for broker, question in self._asked.items():
            what = f"ApiVersions of {self._hit.target} through the tap to broker {broker}"
            reply = question.reply()
            if reply is None:
                if self._rule.timed_ms(broker, timing.WIRE_PASSES_S) is None:
                    return Finding(False, f"{what} had no answer, nor had that of another client")
                reply = question.reply()  # it was sent before the other client's
            if reply is not None:
                return Finding(False, f"{what} was {'answered' if reply else 'ended'}")
        waited = grouped(min(question.age_ms() for question in self._asked.values()))
        to = ", ".join(map(str, self._asked))
        return self._shown_for_member(
            f"ApiVersions of {self._hit.target} through the tap had no answer of broker {to}"
            f" for {waited} ms, and another client's had",
            len(self._asked),
        )

    def verify_healed(self) -> Finding:
        """Wait until each is answered."""
        return self._await(self._look, timing.WIRE_BACK_MS, "not all were answered")

    def _look(self) -> Finding | None:
        for broker, question in list(self._asked.items()):
            reply = question.reply()
            if reply is None:
                return None
            question.close()
            if not reply:  # the broker went away meanwhile
                self._asked[broker] = self._rule.ask(broker, self._hit.target)
                return None
            del self._asked[broker]
        return Finding(True, "all were answered")


class NetPartition(Parted):
    """Parts members from brokers: nothing passes between them, on new connections either."""

    noun = "partition"

    fault: Literal["net.partition"]
    brokers: BrokerTarget
    """The brokers on the other side, resolved when the fault fires."""
    way: Way = "both"
    """`to-broker` stops requests, `to-client` answers."""


class NetIsolate(Parted):
    """Cuts members off from all brokers, on new connections too."""

    noun = "isolation"

    fault: Literal["net.isolate"]
    way: Way = "both"
    """`to-broker` stops requests, `to-client` answers."""


class BetweenFault(NetFault):
    """A fault between members and brokers that may be selected."""

    brokers: BrokerTarget | None = None
    """The brokers on the other side, resolved when the fault fires; without it, all."""


class NetDelay(BetweenFault):
    """Delays what passes between members and brokers, without changing its order."""

    noun = "delay"
    action = "delay"

    fault: Literal["net.delay"]
    latency_ms: PositiveMs
    """How much longer each request and each answer takes."""
    jitter_ms: DurationMs = 0
    """By how much the latency varies, up and down, decided by the run's seed."""
    way: Way = "both"
    """`to-broker` delays requests, `to-client` answers."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
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

    @property
    def _bounds_ms(self) -> tuple[int, int]:
        """How long a request takes at least and at most."""
        ways = 2 if self.way == "both" else 1
        return ways * (self.latency_ms - self.jitter_ms), ways * (self.latency_ms + self.jitter_ms)

    def verify(self) -> Finding:
        """Send one to each broker, and return whether each takes its time for the member alone."""
        shown = []
        for broker in self._rule.probed:
            shown.append(self._took(broker))
            if not shown[-1].holds:
                return shown[-1]
        return self._shown_for_member(", ".join(one.evidence for one in shown), len(shown))

    def _took(self, broker: int) -> Finding:
        """Return whether a broker took its time, and half of it at most for another client.

        A machine that is so busy that it takes as long for anybody shows nothing.
        """
        least_ms, most_ms = self._bounds_ms
        what = f"ApiVersions of {self._hit.target} through the tap"
        within_s = most_ms / 1000 + timing.WIRE_PASSES_S
        took_ms = self._rule.timed_ms(broker, within_s, self._hit.target)
        if took_ms is None:
            return Finding(False, f"{what} was not answered by broker {broker}")
        what = f"{what} took broker {broker} {grouped(round(took_ms))} ms"
        if took_ms < least_ms:
            return Finding(False, what)
        for _ in range(timing.WIRE_TRIES):
            other_ms = self._rule.timed_ms(broker, timing.WIRE_PASSES_S)
            if other_ms is not None and other_ms < least_ms / 2:
                return Finding(True, f"{what}, and another client's {grouped(round(other_ms))} ms")
        return Finding(False, f"{what}, but so did that of another client")

    def verify_healed(self) -> Finding:
        """Wait until one is answered."""
        return self._await(self._answered, timing.WIRE_BACK_MS, "none was answered")

    def _answered(self) -> Finding | None:
        broker = self._rule.probed[0]
        answered = self._rule.timed_ms(broker, timing.WIRE_PASSES_S, self._hit.target)
        return None if answered is None else Finding(True, "one was answered")


class NetHold(BetweenFault):
    """Holds requests of an API, and what follows them on their connection, until healed."""

    noun = "hold"
    action = "hold"

    fault: Literal["net.hold"]
    apis: Apis
    """The requests that are held, such as `[SYNC_GROUP]`."""

    _ended_ms: int = 0

    def verify(self) -> Finding:
        """Return whether some wait, and none arrived."""
        self._ended_ms = now_ms()
        held, apis = self._rule.hits(), ", ".join(self.apis)
        if not held:
            return Finding(False, f"{self._hit.target} sent no {apis}")
        if came := self._arrived(self._rule.began_ms):
            return Finding(False, f"{held} held, but {came}")
        return Finding(True, f"{held} {apis} of {self._hit.target} held, none arrived")

    def verify_healed(self) -> Finding:
        """Wait until one arrives, or its connection has ended."""
        return self._await(self._let_go, timing.WIRE_BACK_MS, "none arrived")

    def _let_go(self) -> Finding | None:
        if came := self._arrived(self._ended_ms):
            return Finding(True, came)
        if any(True for _ in self._rule.hit_lines({})):
            return Finding(True, "the tap wrote what became of it")
        return None

    def _arrived(self, since_ms: int) -> str | None:
        witness = self._context.witness
        witness.poll()
        for api in self.apis:
            if found := witness.latest(self._hit.target, since_ms, api):
                return f"{api} arrived ({found.place})"
        return None


class ChosenFault(BetweenFault):
    """A fault that hits requests of some APIs, all of them or a share."""

    apis: Apis
    """The requests that are hit, such as `[JOIN_GROUP]`."""
    after: Count = 0
    """How many such requests of each member pass first."""
    count: PositiveCount | None = None
    """How many requests of each member are hit at most."""
    probability: Share = 1.0
    """The share of requests that is hit, decided by the run's seed."""
    noted: ClassVar[Mapping[str, object]]
    """What the tap's lines say of a request that was hit."""

    def verify(self) -> Finding:
        """Return whether the brokers have each request that was hit as often as they should."""
        missing = "the broker's own log lacks some that were hit"
        return self._await(self._look, timing.WIRE_LOGGED_MS, missing)

    def _look(self) -> Finding | None:
        twice = self.action == "duplicate"
        hit = list(self._rule.hit_lines(self.noted))
        if not hit:
            return Finding(False, f"the tap wrote of no request that {self._rule.id} hit")
        counts = [self._rule.times_logged(broker, line) for broker, line in hit]
        if any(count is not None and count < 1 + twice for count in counts):
            return None
        broker, line = hit[0]
        header = line["requestHeader"]
        what = (
            f"{len(hit)} hit, the first {header['requestApiKeyName']} {header['correlationId']}"
            f" to broker {broker}"
        )
        if None in counts:
            return Finding(True, f"{what}, as the tap wrote (the broker has no log here)")
        arrived = "twice" if twice else "with its answer"
        return Finding(True, f"{what}, which its own log has {arrived}")

    def verify_healed(self) -> Finding:
        """Return that nothing lasts: single requests were hit."""
        return Finding(True, "no further request is hit")


class NetDropAnswers(ChosenFault):
    """Lets requests arrive and loses their answers."""

    noun = "answer drop"
    action = "drop-answers"
    noted = MappingProxyType({"delivered": False, "why": "dropped"})

    fault: Literal["net.drop-answers"]
    then: Literal["close", "silence"] = "close"
    """What becomes of the connection: it ends, or stays open without any further answer."""


class NetDuplicate(ChosenFault):
    """Sends requests twice; the client gets the answer to the first."""

    noun = "request duplication"
    action = "duplicate"
    noted = MappingProxyType({"copy": True})

    fault: Literal["net.duplicate"]


class NetAnswerError(ChosenFault):
    """Lets requests arrive, and gives the members an error instead of the broker's answer."""

    noun = "answer error"
    action = "answer-error"
    excuses = False
    noted = MappingProxyType({})

    fault: Literal["net.answer-error"]
    apis: CoordinatorApis
    """The requests that are answered so, such as `[HEARTBEAT]`."""
    error: ErrorName
    """The error's name, as Kafka's `Errors` has it, such as `UNKNOWN_MEMBER_ID`."""
