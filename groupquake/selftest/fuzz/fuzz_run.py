"""A whole run: sequences are played and judged, and what is unexplained is made small."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path

from groupquake.selftest.fuzz import findings
from groupquake.selftest.fuzz.campaign import PROGRESS_EVERY_S, Campaign, event_file
from groupquake.selftest.fuzz.judge import Judged, Verdict, judge
from groupquake.selftest.fuzz.sequence import Played
from groupquake.selftest.fuzz.shrink import Script, shrink
from reference_coordinator.classic.profiles import Profile

SHRUNK = 5
"""So many unexplained sequences are made small; the others are written as they are."""


@dataclass
class Outcome:
    """What came of a run; `texts` are the event files of the sequences, `pages` of findings."""

    texts: list[str] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    requests: int = 0
    unanswered: int = 0
    lost: int = 0
    pages: list[Path] = field(default_factory=list)

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many sequences have each verdict."""
        return Counter(judged.verdict for judged in self.judged)

    @property
    def worst(self) -> Verdict:
        """The verdict of the run: one unexplained sequence decides, then one unknown."""
        found = self.verdicts
        for verdict in (Verdict.UNEXPLAINED, Verdict.UNKNOWN):
            if found[verdict]:
                return verdict
        return Verdict.EXPLAINED


def play_and_judge(
    campaign: Campaign, count: int, profile: Profile, pool: Pool, folder: Path
) -> Outcome:
    """Play `count` sequences, judge each, and shrink the first that are unexplained."""
    outcome = Outcome()
    waiting: list[tuple[Played, AsyncResult[Judged]]] = []
    for played in campaign.play(count, folder / "events.jsonl"):
        text = event_file(campaign.target, played)
        said = played.log.exchanges
        outcome.texts.append(text)
        outcome.requests += len(said)
        outcome.unanswered += sum(exchange.response is None for exchange in said)
        outcome.lost += played.lost
        waiting.append((played, pool.apply_async(judge, (text, profile))))
    unexplained = []
    told = time.monotonic()
    for number, (played, future) in enumerate(waiting, 1):
        judged = future.get()
        outcome.judged.append(judged)
        if time.monotonic() > told + PROGRESS_EVERY_S or number == count:
            told = time.monotonic()
            campaign.progress(f"judged {number} of {count}: {verdict_counts(outcome)}")
        if judged.verdict is not Verdict.EXPLAINED:
            unexplained.append((played, judged))
    for played, judged in unexplained:
        small = played
        if judged.verdict is Verdict.UNEXPLAINED and len(outcome.pages) < SHRUNK:
            campaign.progress(f"sequence {played.number} is unexplained: making it small")
            small = Shrinking(campaign, profile, pool, played).run() or played
        outcome.pages.append(_written(campaign, small, profile, folder, played.number))
    return outcome


def verdict_counts(outcome: Outcome) -> str:
    """Say how many sequences have each verdict."""
    return ", ".join(f"{outcome.verdicts[verdict]:,} {verdict}" for verdict in Verdict)


def _written(
    campaign: Campaign, played: Played, profile: Profile, folder: Path, number: int
) -> Path:
    """Write a finding down, as the oracle sees it now."""
    text = event_file(campaign.target, played)
    judged = judge(text, profile)
    return findings.write(folder, f"{judged.verdict}-{number}", text, played, judged.violations)


@dataclass
class Shrinking:
    """Plays smaller scripts on the broker, and keeps those that are unexplained as well."""

    campaign: Campaign
    profile: Profile
    pool: Pool
    played: Played
    _round: int = 0

    def run(self) -> Played | None:
        """Return the smallest sequence that is still unexplained; None if it did not come again."""
        return shrink(self.played.steps, self._try)

    def _try(self, scripts: Sequence[Script]) -> list[Played | None]:
        self._round += 1
        name = f"{self.played.number}.{self._round}"
        tried = self.campaign.play_again(scripts, name, bulky=self.played.bulky)
        texts = [event_file(self.campaign.target, played) for played in tried]
        judged = self.pool.starmap(judge, [(text, self.profile) for text in texts], chunksize=1)
        return [
            played if told.verdict is Verdict.UNEXPLAINED else None
            for played, told in zip(tried, judged, strict=True)
        ]
