"""What the oracle makes of a sequence: explained, unexplained or unknown, and what it went through.

Sequences are judged in processes of their own: the client's clock must not wait for the oracle.
"""

import json
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.pool import Pool

from groupquake.selftest.fuzz.coverage import Flip, errors_of
from reference_coordinator.classic.effects import Transition
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.step import Step, step
from reference_coordinator.event_files.reading import EventSequence, read
from reference_coordinator.replay import Replay, Tolerance, Violation, replay
from reports.judgement.collector import collector_paused

BRIEFLY = 300
"""How many steps a search may cost where one sequence of many will do."""


class Verdict(StrEnum):
    """What became of a sequence."""

    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Judged:
    """A sequence's verdict, and how long it took to find it.

    `moves` are the group's transitions, `errors` what was answered.
    """

    verdict: Verdict
    violations: tuple[Violation, ...]
    moves: Counter[str]
    errors: Counter[str]
    seconds: float


def judge(text: str, profile: Profile) -> Judged:
    """Replay one sequence, given as an event file, under the rules of a profile."""
    errors = Counter(error for line in text.splitlines() for error in errors_of(json.loads(line)))
    began = time.perf_counter()
    told = replayed(text, profile)
    seconds = time.perf_counter() - began
    moves = Counter(map(_named, told.transitions))
    return Judged(verdict_of(told), told.violations, moves, errors, seconds)


def replayed(text: str, profile: Profile, tolerance: Tolerance | None = None) -> Replay:
    """Replay one sequence to its first violation, if there is one: the next may follow from it.

    The rules are those of a profile, the settings those that the sequence's header has.
    """
    (sequence,) = read(text.splitlines(), "the fuzzer's events")
    return replay_of(sequence, profile, tolerance)


def replay_of(
    sequence: EventSequence,
    profile: Profile,
    tolerance: Tolerance | None = None,
    coordinator: Step = step,
) -> Replay:
    """Replay a sequence that was read, by a coordinator; see `replayed`."""
    rules = profile.with_settings(sequence.settings)
    with collector_paused():
        return replay(sequence.evidence, rules, tolerance, first_alone=True, step=coordinator)


def verdict_of(told: Replay) -> Verdict:
    """Sum a replay up."""
    if not told.violations:
        return Verdict.EXPLAINED
    return Verdict.UNEXPLAINED if told.proven else Verdict.UNKNOWN


def _named(move: Transition) -> str:
    """Name a transition: what a join phase began for is part of it."""
    return f"{move.before} -> {move.after}{f' ({move.reason})' if move.reason else ''}"


def contradiction(texts: Sequence[str], flip: Flip) -> int | None:
    """Return the place of the first sequence that a profile with one other rule cannot explain.

    It must show with little search: there are many sequences, and most contradict nothing.
    """
    for place, text in enumerate(texts):
        told = replayed(text, flip.profile, Tolerance(search=BRIEFLY))
        if verdict_of(told) is Verdict.UNEXPLAINED:
            return place
    return None


def judges() -> Pool:
    """Make processes that judge, one a core; as a context manager it ends them whatever they do."""
    fresh = multiprocessing.get_context("spawn")  # threads hold locks that a fork would inherit
    return fresh.Pool(initializer=_leave_signals_alone)


def _leave_signals_alone() -> None:
    """Ctrl-C goes to the whole group of processes; the one that commands ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
