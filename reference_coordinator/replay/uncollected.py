"""Work during which Python does not look for cycles of dead objects."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the cyclic collector off meanwhile, if it was on.

    A replay makes many objects that live on, and no cycles: looking for some takes a fifth of it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
