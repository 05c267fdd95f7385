"""A whole run of the fuzzer: play sequences, judge them, reduce the unexplained ones."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path

from groupquake.fuzz import findings
from groupquake.fuzz.campaign import PROGRESS_EVERY_S, Campaign, event_file
from groupquake.fuzz.judge import Judged, Verdict, judge
from groupquake.fuzz.sequence import Played
from groupquake.fuzz.shrink import Script, shrink
from reference_coordinator.classic.profiles import Profile

SHRUNK = 5
"""The most unexplained sequences to reduce; further ones are written as they are."""


@dataclass
class Outcome:
    """The result of a run; `texts` are event files of the sequences, `pages` texts of findings."""

    texts: list[str] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    requests: int = 0
    unanswered: int = 0
    lost: int = 0
    pages: list[Path] = field(default_factory=list)

    @property
    def verdicts(self) -> Counter[Verdict]:
        """The number of sequences for each verdict."""
        return Counter(judged.verdict for judged in self.judged)

    @property
    def worst(self) -> Verdict:
        """The verdict of the run: unexplained if any sequence is, else unknown if any is."""
        found = self.verdicts
        for verdict in (Verdict.UNEXPLAINED, Verdict.UNKNOWN):
            if found[verdict]:
                return verdict
        return Verdict.EXPLAINED


def play_and_judge(
    campaign: Campaign, count: int, profile: Profile, pool: Pool, folder: Path
) -> Outcome:
    """Play `count` sequences, judge each, and reduce the first unexplained ones."""
    outcome = Outcome()
    waiting: list[tuple[Played, AsyncResult[Judged]]] = []
    for played in campaign.play(count, folder / "events.jsonl"):
        text = event_file(campaign.target, played)
        exchanges = played.log.exchanges
        outcome.texts.append(text)
        outcome.requests += len(exchanges)
        outcome.unanswered += sum(exchange.response is None for exchange in exchanges)
        outcome.lost += played.lost
        waiting.append((played, pool.apply_async(judge, (text, profile))))
    unexplained = []
    shown_s = time.monotonic()
    for number, (played, future) in enumerate(waiting, 1):
        judged = future.get()
        outcome.judged.append(judged)
        if time.monotonic() > shown_s + PROGRESS_EVERY_S or number == count:
            shown_s = time.monotonic()
            campaign.progress(f"judged {number} of {count}: {verdict_counts(outcome)}")
        if judged.verdict is not Verdict.EXPLAINED:
            unexplained.append((played, judged))
    for played, judged in unexplained:
        small = played
        if judged.verdict is Verdict.UNEXPLAINED and len(outcome.pages) < SHRUNK:
            campaign.progress(f"sequence {played.number} is unexplained: reducing it")
            small = Shrinking(campaign, profile, pool, played).run() or played
        outcome.pages.append(_written(campaign, small, profile, folder, played.number))
    return outcome


def verdict_counts(outcome: Outcome) -> str:
    """Return how many sequences have each verdict, as text."""
    return ", ".join(f"{outcome.verdicts[verdict]:,} {verdict}" for verdict in Verdict)


def _written(
    campaign: Campaign, played: Played, profile: Profile, folder: Path, number: int
) -> Path:
    """Judge a sequence again and write it as a finding."""
    text = event_file(campaign.target, played)
    judged = judge(text, profile)
    return findings.write(folder, f"{judged.verdict}-{number}", text, played, judged.violations)


@dataclass
class Shrinking:
    """Plays smaller scripts on the broker, and keeps those that are unexplained too."""

    campaign: Campaign
    profile: Profile
    pool: Pool
    played: Played
    _round: int = 0

    def run(self) -> Played | None:
        """Return the smallest sequence that is still unexplained; None if none is."""
        return shrink(self.played.steps, self._try)

    def _try(self, scripts: Sequence[Script]) -> list[Played | None]:
        self._round += 1
        name = f"{self.played.number}.{self._round}"
        tried = self.campaign.play_again(scripts, name, bulky=self.played.bulky)
        texts = [event_file(self.campaign.target, played) for played in tried]
        judged = self.pool.starmap(judge, [(text, self.profile) for text in texts], chunksize=1)
        return [
            played if result.verdict is Verdict.UNEXPLAINED else None
            for played, result in zip(tried, judged, strict=True)
        ]
