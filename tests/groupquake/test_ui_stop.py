"""The signal that stops a run early: what it does depends on when it comes."""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from groupquake.exits import AbortedError
from groupquake.signals import STOP, Signals
from tests.chaos.fakes import until


@pytest.fixture
def signals() -> Iterator[Signals]:
    before = {number: signal.getsignal(number) for number in signal.Signals}
    made = Signals()
    made.install()
    yield made
    for number in (STOP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, before[number])


def test_before_there_is_a_plan_to_stop_it_ends_the_run(signals: Signals) -> None:
    with pytest.raises(AbortedError, match="Stop"):
        signal.raise_signal(STOP)
    signal.raise_signal(STOP)  # a second press does not interrupt the clean-up


def test_error_handlers_do_not_swallow_a_signal(signals: Signals) -> None:
    with pytest.raises(AbortedError, match="SIGINT: interrupted"), suppress(Exception):
        signal.raise_signal(signal.SIGINT)


def test_it_orders_a_stop_while_the_plan_goes_on_and_nothing_afterwards(signals: Signals) -> None:
    orders: list[str] = []
    with signals.stopping(lambda: orders.append("stop")):
        signal.raise_signal(STOP)
    signal.raise_signal(STOP)
    assert orders == ["stop"]


def test_it_leaves_the_signals_that_end_a_command_as_they_are(signals: Signals) -> None:
    with signals.stopping(lambda: None):
        signal.raise_signal(STOP)
        with pytest.raises(AbortedError, match="SIGTERM"):
            signal.raise_signal(signal.SIGTERM)


def test_what_ends_a_run_from_another_thread_has_the_effect_of_a_signal(signals: Signals) -> None:
    names: list[str] = []
    with signals.handling(names.append):
        thread = threading.Thread(target=signals.end, args=("no space left",))
        thread.start()
        thread.join()
        until(lambda: names)
    signal.raise_signal(signal.SIGINT)  # a signal after it does no more
    assert names == ["no space left"]


def test_where_nothing_handles_signals_the_process_goes_on() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Signals().end("no space left")
    signal.signal(signal.SIGTERM, before)
