"""Plays one random sequence, or plays the steps of one again."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from groupquake.fuzz.actions import BEFORE_GROUP_EXISTS, TABLE
from groupquake.fuzz.broker_connections import BrokerConnections
from groupquake.fuzz.script import Step
from groupquake.fuzz.sequence_driver import SequenceDriver
from groupquake.fuzz.target import Target
from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from loadtest.wire import EventLog

EARLY, BULKY, OLD_JOINS = 0.2, 0.06, 0.3
"""Probabilities: of requests before the group exists; of records that are too large; of JoinGroup
versions before static membership, where a group cannot have those and newer ones."""
SMALL = 20_000
"""The largest message.max.bytes with which a sequence sends records that are too large."""
LONGEST_MS = 12_000
LAST_WORDS_MS = 1_000
"""How long the last responses are awaited."""
ANSWER_NEEDED_MS = 3_000
"""How long a replayed step waits for the responses that it refers to."""


@dataclass(frozen=True, slots=True)
class Played:
    """A played sequence: its group, its exchanges, and the steps to play it again.

    A `bulky` one has records that are too large for the log, so that writes fail. `stalls` are the
    stalls of the broker, in ms since the sequence began.
    """

    number: int
    group: str
    log: EventLog
    steps: tuple[Step, ...]
    lost: int
    bulky: bool = False
    stalls: tuple[tuple[float, float], ...] = ()


def play(target: Target, seed: int, number: int) -> Played:
    """Play the random sequence of a seed and a number, in its own group."""
    rng = Random(f"{seed}:{number}")
    bulky = rng.random() < BULKY and may_be_bulky(target)
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
        return _finish(connections, number, bulky=bulky)


def _driver(
    target: Target, connections: BrokerConnections, rng: Random, *, bulky: bool
) -> SequenceDriver:
    """Draw the properties of a sequence's processes."""
    apart = target.old_joins_know_no_statics
    dynamic_alone = apart and rng.random() < OLD_JOINS
    return SequenceDriver(
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


def may_be_bulky(target: Target) -> bool:
    """Return whether sequences may send records that are too large."""
    return target.largest_record <= SMALL and target.offsets_partitions.has_exclusive


def play_again(
    target: Target, steps: Sequence[Step], group: str, number: int, *, bulky: bool
) -> Played:
    """Play steps again, with the same times between them."""
    with target.offsets_partitions.group(group, alone=bulky) as name:
        connections = BrokerConnections(target.host, target.port, name)
        _repeat(connections, steps)
        return _finish(connections, number, bulky=bulky)


def _repeat(connections: BrokerConnections, steps: Sequence[Step]) -> None:
    before: Step | None = None
    done_ms = 0.0
    kept = {step.number for step in steps}
    for step in steps:
        gap_ms = step.at_ms - (before.at_ms if before else 0)
        connections.receive_until(done_ms + gap_ms)
        needed = step.needs() & kept
        connections.receive_until(
            connections.now_ms + ANSWER_NEEDED_MS,
            lambda needed=needed: needed <= connections.answers.keys(),  # type: ignore[misc]
        )
        done_ms = connections.now_ms
        connections.send_step(step)
        before = step


def _finish(connections: BrokerConnections, number: int, *, bulky: bool) -> Played:
    connections.receive_until(connections.now_ms + LAST_WORDS_MS, lambda: not connections.awaited)
    connections.finish()
    return Played(
        number,
        connections.group,
        connections.log,
        tuple(connections.steps),
        connections.lost,
        bulky,
    )
