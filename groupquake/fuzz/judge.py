"""Judges a sequence by the oracle: explained, unexplained or unknown; and measures its coverage.

Separate processes judge, so that the oracle does not delay the client that plays sequences.
"""

import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from multiprocessing.pool import Pool

from kafka_protocol.errors import codes_in, name_of
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.step import Step, step
from reference_coordinator.event_files.reading import EventSequence, read
from reference_coordinator.replay import Replay, Tolerance, replay
from reports.judgement.collector import collector_paused

BRIEFLY = Tolerance(search=300)
"""The search limit where one sequence of many is enough."""


class Verdict(StrEnum):
    """The verdict on a sequence."""

    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Judged:
    """The verdict on a sequence, and the seconds that judging took.

    `moves` counts the group's transitions, each with the reason of its join phase, `errors` the
    error codes of its answers, NONE too.
    """

    verdict: Verdict
    moves: Counter[str]
    errors: Counter[str]
    seconds: float


def parsed(text: str) -> EventSequence:
    """Read the event file of one sequence."""
    (sequence,) = read(text.splitlines(), "the fuzzer's events")
    return sequence


def judge(text: str, profile: Profile) -> Judged:
    """Replay one sequence, given as an event file, under the rules of a profile."""
    sequence = parsed(text)
    began = time.perf_counter()
    result = replayed(sequence, profile)
    seconds = time.perf_counter() - began
    moves = Counter(
        f"{move.before} -> {move.after}{f' ({move.reason})' if move.reason else ''}"
        for move in result.transitions
    )
    errors = Counter(
        f"{seen.api} {name_of(code)}"
        for seen in sequence.requests
        for code in codes_in(seen.response)
    )
    return Judged(verdict_of(result), moves, errors, seconds)


def replayed(
    sequence: EventSequence,
    profile: Profile,
    tolerance: Tolerance | None = None,
    coordinator: Step = step,
) -> Replay:
    """Replay one sequence up to its first violation; later ones may follow from it.

    The rules are the profile's, the settings those in the sequence's header.
    """
    rules = profile.with_settings(sequence.settings)
    protocol = replace(CLASSIC, step=coordinator)
    with collector_paused():
        return replay(sequence.evidence, rules, tolerance, first_alone=True, protocol=protocol)


def verdict_of(result: Replay) -> Verdict:
    """Return the verdict of a replay."""
    if not result.violations:
        return Verdict.EXPLAINED
    return Verdict.UNEXPLAINED if result.proven else Verdict.UNKNOWN


def contradiction(texts: Sequence[str], other: Profile) -> int | None:
    """Return the index of the first sequence that a profile cannot explain.

    A short search must show it, since there are many sequences and most contradict nothing.
    """
    for place, text in enumerate(texts):
        if verdict_of(replayed(parsed(text), other, BRIEFLY)) is Verdict.UNEXPLAINED:
            return place
    return None


def judges() -> Pool:
    """Start judging processes, one for each core; leaving the context kills them."""
    fresh = multiprocessing.get_context("spawn")  # a fork would inherit locks that threads hold
    return fresh.Pool(initializer=_leave_signals_alone)


def _leave_signals_alone() -> None:
    """Ignore Ctrl-C, which the whole process group gets: the parent ends these processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
