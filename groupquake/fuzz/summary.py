"""The summary of a fuzzer run: verdicts and coverage."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.pool import Pool
from pathlib import Path

from groupquake.fuzz import expected_coverage
from groupquake.fuzz.coverage import ALLOWS_MORE, OUT_OF_REACH, flips, moot
from groupquake.fuzz.fuzz_run import Outcome, verdict_counts
from groupquake.fuzz.judge import Verdict, contradiction
from groupquake.fuzz.sequence import may_be_bulky
from groupquake.fuzz.target import Target
from reference_coordinator.classic.profiles import Profile

SAMPLE = 20
"""The number of sequences in one sample for rule coverage."""
SAMPLES = 50
"""The most samples: some rules show in one sequence of a thousand only."""


def coverage(
    outcome: Outcome,
    profile: Profile,
    target: Target,
    pool: Pool,
    progress: Callable[[str], None],
) -> Mapping[str, str]:
    """Find a sequence that contradicts each rule's other value, by `rule=value`; "" if none does.

    Sequences that were explained with little search come first: they leave few other explanations.
    """
    judged = zip(outcome.texts, outcome.judged, strict=True)
    explained = [
        (result.seconds / len(text), text)
        for text, result in judged
        if result.verdict is Verdict.EXPLAINED
    ]
    texts = [text for _, text in sorted(explained)][: SAMPLE * SAMPLES]
    found: dict[str, str] = {}
    open_ = [
        flip
        for flip in flips(profile)
        if flip.rule not in moot(profile, target.versions, target.kafka)
    ]
    for start in range(0, len(texts), SAMPLE):
        part = texts[start : start + SAMPLE]
        first_places = pool.starmap(contradiction, [(part, flip) for flip in open_], chunksize=1)
        for flip, place in zip(open_, first_places, strict=True):
            if place is not None:
                found[flip.name] = json.loads(part[place].partition("\n")[0])["group"]
        open_ = [flip for flip in open_ if flip.name not in found]
        progress(f"{len(found)} rules shown by {start + len(part)} sequences, {len(open_)} not yet")
        if not open_:
            break
    return found | {flip.name: "" for flip in open_}


def summary(
    outcome: Outcome, covered: Mapping[str, str], profile: Profile, target: Target, folder: Path
) -> list[str]:
    """Return the lines that are printed at the end."""
    moves = sum((judged.moves for judged in outcome.judged), Counter[str]())
    errors = sum((judged.errors for judged in outcome.judged), Counter[str]())
    bulky = may_be_bulky(target)
    moves.update(dict.fromkeys(expected_coverage.moves(profile, bulky=bulky), 0))
    errors.update(
        dict.fromkeys(expected_coverage.answers(profile, target.versions, bulky=bulky), 0)
    )
    seen = [*moves.values(), *errors.values(), *map(bool, covered.values())]
    uncovered = {**OUT_OF_REACH, **ALLOWS_MORE, **moot(profile, target.versions, target.kafka)}
    return [
        "rules, and a sequence that contradicts another value of each",
        *(f"  {rule}: {group or 'NONE'}" for rule, group in sorted(covered.items())),
        *(f"  {rule}: {why}" for rule, why in uncovered.items()),
        *_table("transitions", moves),
        *_table("answers", errors),
        f"never seen: {seen.count(0)} of {len(seen)} rules, transitions and answers",
        f"{len(outcome.judged):,} sequences, {outcome.requests:,} requests",
        f"{outcome.unanswered:,} without a response, {outcome.lost} connections lost",
        verdict_counts(outcome),
        *(f"see {page}" for page in outcome.pages),
        f"event file: {folder / 'events.jsonl'}",
    ]


def _table(title: str, counts: Mapping[str, int]) -> Sequence[str]:
    return [title, *(f"{count:8,}  {name}" for name, count in sorted(counts.items()))]
