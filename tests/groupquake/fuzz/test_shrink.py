"""An unexplained sequence is shrunk as long as it reproduces."""

from collections.abc import Callable, Sequence

import pytest

from groupquake.fuzz.script import Step
from groupquake.fuzz.sequence import Played
from groupquake.fuzz.shrink import TRIALS, Script, shrink
from loadtest.wire import EventLog

SCRIPT = tuple(Step(n, 10.0 * n, f"c{n % 4}", f"c{n % 4}.1", "HEARTBEAT") for n in range(1, 41))


class Broker:
    """A broker that is known by the scripts that are unexplained on it."""

    def __init__(self, unexplained: Callable[[set[int]], bool]) -> None:
        self.unexplained = unexplained
        self.tried = 0

    def play(self, scripts: Sequence[Script]) -> list[Played | None]:
        self.tried += len(scripts)
        return [
            Played(0, "g", EventLog(), tuple(script), 0)
            if self.unexplained({step.number for step in script})
            else None
            for script in scripts
        ]


@pytest.mark.parametrize("needed", [{1}, {7, 30}, {2, 3, 4, 39}, {10, 11}])
def test_only_the_steps_that_matter_are_left(needed: set[int]) -> None:
    small = shrink(SCRIPT, Broker(needed.issubset).play)
    assert small is not None
    assert {step.number for step in small.steps} == needed


def test_steps_stay_in_order_and_keep_their_times() -> None:
    small = shrink(SCRIPT, Broker({9, 20, 33}.issubset).play)
    assert small is not None
    assert small.steps == tuple(step for step in SCRIPT if step.number in (9, 20, 33))


def test_a_violation_that_does_not_reproduce_is_not_shrunk() -> None:
    broker = Broker(lambda _: False)
    assert shrink(SCRIPT, broker.play) is None
    assert broker.tried == 1


def test_it_ends_even_if_every_step_matters() -> None:
    broker = Broker(lambda left: len(left) == len(SCRIPT))
    small = shrink(SCRIPT, broker.play)
    assert small is not None
    assert small.steps == SCRIPT
    assert broker.tried < TRIALS
