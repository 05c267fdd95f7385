"""The summary of a campaign: verdicts and coverage."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from groupquake.fuzz.campaign import Campaign, Outcome
from groupquake.fuzz.coverage import (
    ALLOWS_MORE,
    OUT_OF_REACH,
    expected_answers,
    expected_moves,
    flips,
    moot,
)
from groupquake.fuzz.judge import Verdict, contradiction

SAMPLE = 20
"""The number of sequences in one sample for rule coverage."""
SAMPLES = 50
"""The most samples: some rules show in one sequence of a thousand only."""


def coverage(outcome: Outcome, campaign: Campaign) -> Mapping[str, str]:
    """Find a sequence that contradicts each rule's other value, by `rule=value`; "" if none does.

    Sequences that were explained with little search come first: they leave few other explanations.
    """
    explained = [
        (result.seconds / len(text), text)
        for text, result in zip(outcome.texts, outcome.judged, strict=True)
        if result.verdict is Verdict.EXPLAINED
    ]
    texts = [text for _, text in sorted(explained)][: SAMPLE * SAMPLES]
    target, found = campaign.target, dict[str, str]()
    without_effect = moot(campaign.profile, target.versions, target.kafka)
    unseen = {
        f"{rule}={value}": other
        for rule, value, other in flips(campaign.profile)
        if rule not in without_effect
    }
    for start in range(0, len(texts), SAMPLE):
        part = texts[start : start + SAMPLE]
        jobs = [(part, other) for other in unseen.values()]
        places = campaign.pool.starmap(contradiction, jobs, chunksize=1)
        for name, place in zip(list(unseen), places, strict=True):
            if place is not None:
                del unseen[name]
                found[name] = json.loads(part[place].partition("\n")[0])["group"]
        campaign.progress(
            f"{len(found)} rules shown by {start + len(part)} sequences, {len(unseen)} not yet"
        )
        if not unseen:
            break
    return found | dict.fromkeys(unseen, "")


def summary(outcome: Outcome, covered: Mapping[str, str], campaign: Campaign) -> list[str]:
    """Return the lines that are printed at the end."""
    profile, target, bulky = campaign.profile, campaign.target, campaign.target.may_be_bulky
    moves = Counter(dict.fromkeys(expected_moves(profile, bulky=bulky), 0))
    errors = Counter(dict.fromkeys(expected_answers(profile, target.versions, bulky=bulky), 0))
    for judged in outcome.judged:
        moves.update(judged.moves)
        errors.update(judged.errors)
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
        outcome.counts,
        *(f"see {file}" for file in outcome.files),
        f"event file: {campaign.folder / 'events.jsonl'}",
    ]


def _table(title: str, counts: Mapping[str, int]) -> Sequence[str]:
    return [title, *(f"{count:8,}  {name}" for name, count in sorted(counts.items()))]
