"""One random sequence from beginning to end, and one played again."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from groupquake.selftest.fuzz.actions import BEFORE_GROUP_EXISTS, TABLE
from groupquake.selftest.fuzz.broker_connections import BrokerConnections
from groupquake.selftest.fuzz.script import Step
from groupquake.selftest.fuzz.sequence_driver import SequenceDriver
from groupquake.selftest.fuzz.target import Target
from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from loadtest.wire import EventLog

EARLY, BULKY, OLD_JOINS = 0.2, 0.06, 0.3
"""How likely somebody speaks of the group before it is there; that records may be too large; that
JoinGroup is spoken as before static members, if that is one or the other."""
SMALL = 20_000
"""A log that takes no more than so many bytes is soon sent more."""
LONGEST_MS = 12_000
LAST_WORDS_MS = 1_000
"""How long answers are waited for at the end."""
ANSWER_NEEDED_MS = 3_000
"""How long a step that is played again waits for the answers it speaks of."""


@dataclass(frozen=True, slots=True)
class Played:
    """A sequence that was played: its group, what was said, and the steps to play it again.

    A `bulky` one has records that are too large for the log, so that writes fail. `stalls` are when
    the broker stood still, in ms since it began.
    """

    number: int
    group: str
    log: EventLog
    steps: tuple[Step, ...]
    lost: int
    bulky: bool = False
    stalls: tuple[tuple[float, float], ...] = ()


def play(target: Target, seed: int, number: int) -> Played:
    """Play the random sequence of a seed and a number, in a group of its own."""
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
    """Draw what the processes of a sequence are like."""
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
    """Tell whether sequences may have records that are too large: where that needs little."""
    return target.largest_record <= SMALL and target.offsets_partitions.has_exclusive


def play_again(
    target: Target, steps: Sequence[Step], group: str, number: int, *, bulky: bool
) -> Played:
    """Play steps again, at the same distances in time."""
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
