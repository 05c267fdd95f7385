"""Leaves out what is not needed: halves of it, then quarters, down to single items."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def fewest(items: Sequence[Item], are_enough: Callable[[list[Item]], bool]) -> list[Item]:
    """Return items of which none can go alone; `are_enough` is asked of each smaller list."""
    found, size = list(items), len(items)
    while size:
        size, start, before = (size + 1) // 2, 0, len(found)
        while start < len(found):
            fewer = found[:start] + found[start + size :]
            if are_enough(fewer):
                found = fewer
            else:
                start += size
        if size == 1 and len(found) == before:
            break  # else what went may have been all that others were needed for
    return found
