"""A campaign: many sequences at the same time, each in its own group, played and judged."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from io import StringIO
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path
from random import Random

from groupquake.fuzz.actions import BEFORE_GROUP_EXISTS, TABLE
from groupquake.fuzz.connections import BrokerConnections, StallDetector
from groupquake.fuzz.driver import Driver
from groupquake.fuzz.judge import Judged, Verdict, judge, parsed
from groupquake.fuzz.target import Target
from groupquake.fuzz.timing import LAST_WORDS_MS, LONGEST_MS, PROGRESS_EVERY_S
from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from loadtest.wire import EventLog
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.event_files.counterexample import counterexample
from reference_coordinator.event_files.writing import PAGE, Account
from reports.judgement.collector import collector_paused

EARLY, BULKY, OLD_JOINS = 0.2, 0.06, 0.3
"""Probabilities: of requests before the group exists; of records that are too large; of JoinGroup
versions before static membership, where a group cannot have those and newer ones."""


@dataclass(frozen=True, slots=True)
class Played:
    """A played sequence: its number, its group and its exchanges.

    A `bulky` one has records that are too large for the log, so that writes fail.
    """

    number: int
    group: str
    log: EventLog
    lost: int
    bulky: bool


def play(target: Target, seed: int, number: int) -> Played:
    """Play the random sequence of a seed and a number, in its own group."""
    rng = Random(f"{seed}:{number}")
    bulky = rng.random() < BULKY and target.may_be_bulky
    with target.offsets_partitions.group(f"fuzz-{seed}-{number}", alone=bulky) as group:
        connections = BrokerConnections(target.host, target.port, group)
        driver = _driver(target, connections, rng, bulky=bulky)
        if rng.random() < EARLY:
            driver.start_process()
            rng.choice(BEFORE_GROUP_EXISTS)(driver)
        for _ in range(rng.randint(1, 4)):
            driver.join(driver.start_process())
        weights = [weight for weight, _ in TABLE]
        for _ in range(rng.randint(15, 45)):
            if connections.now_ms > LONGEST_MS:
                break
            while not rng.choices(TABLE, weights)[0][1](driver):
                pass
        connections.finish(LAST_WORDS_MS)
        return Played(number, group, connections.log, connections.lost, bulky)


def _driver(target: Target, connections: BrokerConnections, rng: Random, *, bulky: bool) -> Driver:
    """Draw the properties of a sequence's processes."""
    apart = target.old_joins_know_no_statics
    dynamic_alone = apart and rng.random() < OLD_JOINS
    return Driver(
        connections,
        rng,
        target.versions,
        target.topic_id,
        static_share=rng.choice((0.0, 0.4, 0.7, 1.0)),
        oldness=rng.choice((0.0, 0.3, 0.9)),
        largest_record=target.largest_record if bulky else 0,
        dynamic_alone=dynamic_alone,
        first_join=FIRST_WITH_INSTANCE_ID["JOIN_GROUP"] if apart and not dynamic_alone else 0,
    )


WARM_UP = 40
"""The number of sequences that are played first and not judged: a broker that has just started
responds late, and late responses allow many orders of requests."""
REDUCED = 5
"""The most unexplained sequences to reduce; further ones are written as they are."""


def event_file(target: Target, played: Played, stalls: list[tuple[float, float]]) -> str:
    """Return a sequence as an event file, with the broker's stalls in ms since it began.

    A `bulky` sequence is an outage throughout: any write of it may fail.
    """
    header: dict[str, object] = {
        "kafka": target.kafka,
        "coordinator": target.coordinator,
        "config": dict(target.config),
        "group": played.group,
        "sequence": played.number,
    }
    if stalls:
        logged = [{"broker": "", "from_ms": begun, "until_ms": over} for begun, over in stalls]
        header["logged"] = {"stalls": logged}
    if played.bulky:
        header["outages"] = [[0, round(played.log.now_ms())]]
    text = StringIO()
    played.log.write(text, header)
    return text.getvalue()


@dataclass
class Outcome:
    """The result of a campaign; `texts` are event files, `judged` their verdicts."""

    texts: list[str] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    requests: int = 0
    unanswered: int = 0
    lost: int = 0
    files: list[Path] = field(default_factory=list)
    """What was written of sequences that are not explained."""

    @property
    def verdicts(self) -> Counter[Verdict]:
        """The number of sequences for each verdict."""
        return Counter(judged.verdict for judged in self.judged)

    @property
    def worst(self) -> Verdict:
        """The verdict of the run: unexplained if any sequence is, else unknown if any is."""
        worst_first = (Verdict.UNEXPLAINED, Verdict.UNKNOWN)
        return next((one for one in worst_first if self.verdicts[one]), Verdict.EXPLAINED)

    @property
    def counts(self) -> str:
        """How many sequences have each verdict."""
        return ", ".join(f"{self.verdicts[verdict]:,} {verdict}" for verdict in Verdict)

    def add(self, text: str, played: Played) -> None:
        """Add a played sequence."""
        exchanges = played.log.exchanges
        self.texts.append(text)
        self.requests += len(exchanges)
        self.unanswered += sum(exchange.response is None for exchange in exchanges)
        self.lost += played.lost


@dataclass
class Campaign:
    """Plays the sequences of a seed on a broker, up to `in_flight` at once, and judges them."""

    target: Target
    stall_detector: StallDetector
    profile: Profile
    pool: Pool
    seed: int
    in_flight: int
    folder: Path
    progress: Callable[[str], None]
    _shown_s: float = 0.0

    def run(self, count: int) -> Outcome:
        """Play `count` sequences, judge each, and write those that are not explained."""
        outcome = Outcome()
        judging = self._play_all(count, outcome)
        for number, result in enumerate(judging, 1):
            outcome.judged.append(result.get())
            self._show(f"judged {number} of {count}: {outcome.counts}", last=number == count)
        for text, judged in zip(outcome.texts, outcome.judged, strict=True):
            if judged.verdict is not Verdict.EXPLAINED:
                reduce = judged.verdict is Verdict.UNEXPLAINED and len(outcome.files) < REDUCED
                if reduce:
                    self.progress("a sequence is unexplained: reducing it")
                outcome.files.append(
                    write(text, judged.verdict, self.profile, self.folder, reduce=reduce)
                )
        return outcome

    def _play_all(self, count: int, outcome: Outcome) -> list[AsyncResult[Judged]]:
        """Play all sequences; return what is judged of each."""
        judging = []
        events = (self.folder / "events.jsonl").open("w")
        with events, ThreadPoolExecutor(self.in_flight) as threads:
            list(threads.map(self._play, range(-WARM_UP, 0)))
            self.progress("the broker is warm")
            began_s = time.monotonic()
            futures = [threads.submit(self._play, number) for number in range(count)]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    text, played = future.result()
                    events.write(text)
                    outcome.add(text, played)
                    judging.append(self.pool.apply_async(judge, (text, self.profile)))
                    rate = outcome.requests / (time.monotonic() - began_s)
                    shown = f"{outcome.requests:,} requests, {rate:.0f} a second"
                    self._show(f"played {done} of {count}: {shown}", last=done == count)
            finally:
                threads.shutdown(cancel_futures=True)
        return judging

    def _play(self, number: int) -> tuple[str, Played]:
        """Play a sequence; its event file has the stalls of the broker during it."""
        played = play(self.target, self.seed, number)
        ended_s = time.monotonic()
        origin_s = ended_s - played.log.now_ms() / 1000
        stalls = [
            (round((begun_s - origin_s) * 1000, 3), round((until_s - origin_s) * 1000, 3))
            for begun_s, until_s in self.stall_detector.stalls(origin_s, ended_s)
        ]
        return event_file(self.target, played, stalls), played

    def _show(self, text: str, *, last: bool) -> None:
        now_s = time.monotonic()
        if last or now_s > self._shown_s + PROGRESS_EVERY_S:
            self._shown_s = now_s
            self.progress(text)


def write(text: str, verdict: Verdict, profile: Profile, folder: Path, *, reduce: bool) -> Path:
    """Write a sequence, and its counterexample if it is to be reduced; return what to read."""
    sequence = parsed(text)
    whole = folder / f"{verdict}-{sequence.number}.jsonl"
    whole.write_text(text)
    if not reduce:
        return whole
    rules = profile.with_settings(sequence.settings)
    with collector_paused():
        found = counterexample(sequence.evidence, rules)
    assert found is not None, "what is unexplained once is always"
    places = {request: f"{whole.name}:{line}" for request, line in sequence.places.items()}
    account = Account(found, sequence, rules, whole.name, places)
    reduced = whole.with_suffix("")
    reduced.mkdir()
    for name, content in account.files().items():
        (reduced / name).write_text(content)
    return reduced / PAGE
