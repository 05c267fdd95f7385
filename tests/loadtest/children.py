"""Functions of tests in processes of their own, because gevent reaps all children of a process.

They are forked from one process that has imported what they need.
"""

import multiprocessing
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

WITHIN_S = 120
_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(["tests.loadtest.test_program"])


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or raise what it raises; it has the environment of now."""
    with ProcessPoolExecutor(1, _FORKED) as child:
        called = child.submit(_call, dict(os.environ), function, arguments)
        try:
            return called.result(WITHIN_S)
        finally:
            if not called.done():
                for process in multiprocessing.active_children():
                    process.kill()


def _call(
    environment: Mapping[str, str], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    os.environ.clear()
    os.environ.update(environment)
    return function(*arguments)
