"""A signal ends the wait, whichever thread the kernel delivers it to."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from time import sleep

import pytest

from chaos.waiting import exit_code


class CameError(Exception):
    """The signal."""


@pytest.fixture
def signalled() -> Iterator[None]:
    """Raise CameError in the main thread, soon; the signal goes to another one, once this waits.

    A wait that misses it gets a second one, far too late and straight to the main thread.
    """

    def handle(number: int, _: object) -> None:
        raise CameError if number == signal.SIGUSR1 else TimeoutError

    def send() -> None:
        sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        if not over.wait(10):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)

    over = threading.Event()
    before = [signal.signal(number, handle) for number in (signal.SIGUSR1, signal.SIGUSR2)]
    thread = threading.Thread(target=send)
    thread.start()
    yield
    over.set()
    thread.join()
    for number, handler in zip((signal.SIGUSR1, signal.SIGUSR2), before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("signalled")
def test_a_wait_for_a_process_is_ended_by_a_signal_to_any_thread() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        with pytest.raises(CameError):
            exit_code(child)
        child.kill()
        assert exit_code(child) == -signal.SIGKILL
