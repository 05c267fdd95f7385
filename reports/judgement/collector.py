"""Python's collector of cyclic garbage, switched off while replays run."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Switch the collector off in this process until the block ends, if it was on.

    A replay makes many objects that live long and no cycles among them; the collector's searches
    for cycles take a fifth of its time. With threads, the first block that ends switches it on.
    """
    was_on = gc.isenabled()
    if was_on:
        gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def collector_spared() -> Iterator[None]:
    """Switch the collector off in a task of Spark, and leave out of its later searches what is old.

    PySpark's worker searches all its objects for cycles after each task (`pyspark/daemon.py`). What
    its modules hold takes 0.1 s of processor time each time, a fifth of a small task. That search
    has ended when the next task begins, so that no cycle is kept.
    """
    gc.freeze()
    with collector_paused():
        yield
