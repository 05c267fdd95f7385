"""Runs blocking calls of Kafka's client in threads, so that other greenlets go on meanwhile."""

from collections.abc import Callable
from typing import Any

from gevent import GreenletExit
from gevent.threadpool import ThreadPool

MOST_THREADS = 256


class BlockingCalls:
    """A thread pool with one thread a client, since at the end all clients close at once."""

    def __init__(self, clients: int) -> None:
        self._pool = ThreadPool(min(max(clients, 1), MOST_THREADS))

    def __call__(self, call: Callable[[], Any]) -> Any:
        """Wait for the call and return its value, or raise what it raised.

        A greenlet that is killed meanwhile still waits for the thread, which uses the client, and
        ends afterwards.
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
    # gevent prints a traceback for every exception in a thread, so the thread raises none.
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001
        return None, error
