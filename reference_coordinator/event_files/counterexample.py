"""The counterexample of a violation: the few requests that show it; the last response is wrong.

First everything after the wrong answer is left out, and what brokers logged in addition; then the
requests of whole members, and then single requests, as long as the first violation stays the same,
and the same broken promise explains what is left: what shows one defect would else show another.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reference_coordinator.classic import CLASSIC, ClassicProtocol
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import with_one_broken
from reference_coordinator.replay.evidence import Evidence, ObservedRequest
from reference_coordinator.replay.group_replay import replay
from reference_coordinator.replay.result import Replay, Violation

STEPS = 300_000
"""How many events trying to leave requests out may replay; a search counts for each of its own."""
LOGGED = ("hints", "stalls", "outages", "loading", "partings", "epoch_events")
"""What brokers logged in addition: left out at once where the answers alone show the violation."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The longest explained prefix, minimised, with the request that no order explains.

    `left_out` counts the requests that it does without; `minimal` says that none more could go.
    `broken` are the promises of KIP-345 of which any one, broken as in the release, explains it.
    """

    evidence: Evidence
    violation: Violation
    left_out: int
    minimal: bool
    broken: tuple[str, ...] = ()


def counterexample(
    evidence: Evidence,
    profile: Profile,
    steps: int = STEPS,
    protocol: ClassicProtocol = CLASSIC,
    is_over: Callable[[], bool] = lambda: False,
) -> Counterexample | None:
    """Reduce evidence to what shows its first violation; None if it is explained.

    Once `is_over`, or once the steps are used up, what is left is returned as it is.
    """
    whole = replay(evidence, profile, first_alone=True, protocol=protocol)
    if not whole.violations:
        return None
    rest = _Rest(evidence, profile, whole, steps, protocol, is_over)
    wrong = rest.violation
    rest.leave_out(
        "requests", [[seen for seen in evidence.requests if seen.earliest_ms > wrong.at_ms]]
    )
    rest.broken = rest.explaining(rest.evidence)
    for part in LOGGED:
        rest.leave_out(part, [getattr(evidence, part)])
    rest.leave_out("requests", _members(rest.evidence.requests, wrong.request))
    rest.thin("requests")
    for part in LOGGED:
        rest.thin(part)
    return Counterexample(
        rest.evidence,
        rest.violation,
        len(evidence.requests) - len(rest.evidence.requests),
        rest.steps > 0,
        rest.broken or (),
    )


@dataclass(slots=True)
class _Rest:
    """What is left of the evidence, and what its replay yields; `steps` of the budget are left."""

    evidence: Evidence
    profile: Profile
    outcome: Replay
    steps: int
    protocol: ClassicProtocol
    is_over: Callable[[], bool]
    broken: tuple[str, ...] | None = None
    """The promises that explain it, if they are known yet."""

    def explaining(self, evidence: Evidence) -> tuple[str, ...] | None:
        """Name the promises of which any one, broken, explains evidence; None if time is over."""
        names = []
        for name, rules in with_one_broken(self.profile).items():
            if self.is_over():
                return None
            replayed = replay(evidence, rules, first_alone=True, protocol=self.protocol)
            self.steps -= replayed.steps + len(evidence.requests)
            names += [] if replayed.violations else [name]
        return tuple(names)

    @property
    def violation(self) -> Violation:
        """What is to be shown."""
        return self.outcome.violations[0]

    def leave_out(self, part: str, groups: Iterable[Sequence[Any]]) -> None:
        """Leave out each group of a part, such as its requests, without which the violation stays.

        Never the request that was answered wrongly.
        """
        for group in groups:
            items = getattr(self.evidence, part)
            gone = {id(item) for item in group if getattr(item, "id", "") != self.violation.request}
            fewer = tuple(item for item in items if id(item) not in gone)
            if len(fewer) == len(items):
                continue
            if self.steps <= 0 or self.is_over():
                self.steps = 0
                return
            less = replace(self.evidence, **{part: fewer})  # type: ignore[arg-type]
            outcome = replay(less, self.profile, first_alone=True, protocol=self.protocol)
            self.steps -= outcome.steps + len(less.requests)
            if _shows(outcome, self.outcome) and (
                self.broken is None or self.explaining(less) == self.broken
            ):
                self.evidence, self.outcome = less, outcome

    def thin(self, part: str) -> None:
        """Leave out halves of a part, and quarters, and so on, until nothing of it can go."""
        size = len(getattr(self.evidence, part))
        while size > 1:
            size = (size + 1) // 2
            items = getattr(self.evidence, part)
            self.leave_out(part, _chunks(items, size))
            if size == 1 and len(getattr(self.evidence, part)) < len(items):
                size = 2  # what went may have been all that others were needed for


def _shows(fewer: Replay, more: Replay) -> bool:
    """Tell whether fewer requests show the same violation, and for no other reason.

    How early or late an answer is may be another matter; whose session ends may not: without its
    heartbeats any member would be gone.
    """
    if not fewer.violations:
        return False
    one, other = fewer.violations[0], more.violations[0]
    same = (one.request, one.rule, one.searched) == (other.request, other.rule, other.searched)
    same_text = (one.expected, one.observed) == (other.expected, other.observed)
    return same and (same_text or one.rule != "answer") and _ended(fewer) <= _ended(more)


def _ended(outcome: Replay) -> Counter[tuple[str, str]]:
    """Count whose sessions ended."""
    ends = ("session_expired", "pending_expired")
    return Counter(
        (said.line, said.subject) for said in outcome.expected_lines if said.line in ends
    )


def _members(requests: Sequence[ObservedRequest], wrong: str) -> Iterator[list[ObservedRequest]]:
    """Yield all requests of each client, but of the one that was answered wrongly."""
    clients = dict.fromkeys(seen.client_id for seen in requests if seen.id != wrong)
    for client in clients:
        yield [seen for seen in requests if seen.client_id == client]


def _chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
