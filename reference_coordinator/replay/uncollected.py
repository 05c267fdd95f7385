"""Work during which Python does not look for cycles of dead objects."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the cyclic collector off meanwhile, if it was on.

    A replay makes many objects that live on, and no cycles: looking for some takes a fifth of it.
    The switch is the whole process's: among threads, the first that is through turns it on again.
    """
    was_on = gc.isenabled()
    if was_on:
        gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
