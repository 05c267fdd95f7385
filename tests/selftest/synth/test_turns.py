"""A coordinator prints all about one request or timer before anything about the next."""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pytest

from kafka_protocol.log_line import EVENT
from kafka_protocol.request_log import COMPLETED
from selftest.synth.group import GroupSimulation
from tests.recorded.logs import RECORDINGS
from tests.selftest.synth.shape import PARSER, spec

FOLLOWS = {"left": ("preparing", "empty"), "session_expired": ("preparing", "empty")}
"""What a line may give rise to, if it gives rise to any."""


class Printed(NamedTuple):
    """A coordinator's line about a group; `generation` is 0 where it names none."""

    template: str
    generation: int
    thread: str


def printed(lines: Iterable[tuple[str, str]]) -> Mapping[str, list[Printed]]:
    """Return the lines about each group, from brokers and what stands behind a line's time."""
    groups: dict[str, list[Printed]] = defaultdict(list)
    for broker, text in lines:
        event = re.fullmatch(EVENT, text)
        if event is None or event[2].startswith(COMPLETED):
            continue
        line = PARSER.parsed(broker, event[3], event[2])
        if line.template and "group" in line.fields:
            generation, thread = int(line.fields.get("generation", 0)), text.split(" ")[0]
            groups[line.fields["group"]].append(Printed(line.template, generation, thread))
    return groups


def interleaved(lines: Iterable[Printed]) -> list[tuple[Printed, Printed]]:
    """Return what is printed of one event, in two pieces or by two threads."""
    wrong = []
    for one, other in itertools.pairwise(lines):
        begun = other.template == "preparing" and one.template == "empty"
        if begun and other.generation < one.generation:
            wrong.append((one, other))
        if other.template in FOLLOWS.get(one.template, ()) and one.thread != other.thread:
            wrong.append((one, other))
    return wrong


def everyone_leaves(group: GroupSimulation) -> None:
    """Stop all members within some µs."""
    for process in list(group.processes):
        group.stop(process)


@pytest.mark.parametrize("name", ["kafka-4.3.0", "kafka-3.9.1-java"])
def test_real_brokers_take_one_event_after_the_other(name: str) -> None:
    groups = printed((line.broker, line.text) for line in RECORDINGS[name].lines)
    pairs = [pair for lines in groups.values() for pair in itertools.pairwise(lines)]
    assert ("left", "preparing") in {(one.template, other.template) for one, other in pairs}
    assert ("left", "empty") in {(one.template, other.template) for one, other in pairs}
    assert [pair for lines in groups.values() for pair in interleaved(lines)] == []


def test_a_synthesized_coordinator_does_too() -> None:
    """Two members leave at once: the first begins a rebalance, the second makes the group empty."""
    run = spec("storm", 400, 32)
    pairs = [n for n in range(400) if (s := run.simulation(n)).size == 2 and not s.static]
    left = 0
    for number in pairs:
        lines = run.simulation(number).run([(9_000.0, everyone_leaves)])
        (found,) = printed((broker, text) for broker, _, text in lines).values()
        assert interleaved(found) == []
        names = [one.template for one in found]
        if names.count("left") == 2:  # a member that waits for an answer ends without a word
            first = names.index("left")
            assert names[first : first + 4] == ["left", "preparing", "left", "empty"]
            left += 1
    assert left > 40
