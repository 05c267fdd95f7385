"""Plays one random sequence."""

from dataclasses import dataclass
from random import Random

from groupquake.fuzz.actions import BEFORE_GROUP_EXISTS, TABLE
from groupquake.fuzz.connections import BrokerConnections
from groupquake.fuzz.driver import Driver
from groupquake.fuzz.target import Target
from groupquake.fuzz.timing import LAST_WORDS_MS, LONGEST_MS
from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from loadtest.wire import EventLog

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
