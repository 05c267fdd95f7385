"""Runs Kafka's blocking calls in threads, so that they do not stop every other greenlet."""

from collections.abc import Callable
from typing import Any

from gevent import GreenletExit
from gevent.threadpool import ThreadPool

MOST_THREADS = 256


class Threads:
    """An `OffHub`: as many threads as there are clients, since at the end all close at once."""

    def __init__(self, clients: int) -> None:
        self._pool = ThreadPool(min(max(clients, 1), MOST_THREADS))

    def __call__(self, call: Callable[[], Any]) -> Any:
        """Wait for the call and return its value, or raise what it raised.

        A greenlet killed meanwhile still waits, as the client is in the thread's hands; it dies
        afterwards.
        """
        result = self._pool.spawn(_outcome, call)
        killed: GreenletExit | None = None
        while not result.ready():
            try:
                result.wait()
            except GreenletExit as kill:
                killed = kill
        if killed is not None:
            raise killed
        value, error = result.get()
        if error is not None:
            raise error
        return value


def _outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    # gevent prints the traceback of whatever a thread raises, so nothing is raised there.
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001
        return None, error
