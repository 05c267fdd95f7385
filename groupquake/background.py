"""Work that goes on in a thread of its own as long as a `with` block lasts."""

import threading
from typing import ClassVar, Self


class Background:
    """Runs `_run` in a thread, which returns soon after `_over` is set; a block ends with it."""

    thread_name: ClassVar[str]
    _over: threading.Event
    _thread: threading.Thread

    def __enter__(self) -> Self:
        """Start the thread."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.thread_name, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError
