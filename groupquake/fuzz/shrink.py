"""Reduces an unexplained sequence: steps are left out as long as it stays unexplained.

Smaller scripts are played on the broker again, many at a time. An effect that depends on the timing
of the broker's threads may not occur again; the result is the smallest sequence that had it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from groupquake.fuzz.script import Step
from groupquake.fuzz.sequence import Played

Script = tuple[Step, ...]
PlayScripts = Callable[[Sequence[Script]], list[Played | None]]
"""Plays scripts; returns the unexplained sequences, and None in place of the others."""

AT_ONCE = 24
TRIALS = 240
"""The most scripts to try."""


def shrink(script: Script, play: PlayScripts) -> Played | None:
    """Return the smallest unexplained sequence found; None if none is unexplained again."""
    (smallest,) = play([script])
    tried = 1
    while smallest is not None and tried < TRIALS:
        found, cost = _smaller(smallest.steps, play)
        tried += cost
        if found is None:
            break
        smallest = found
    return smallest


def _smaller(script: Script, play: PlayScripts) -> tuple[Played | None, int]:
    """Play smaller scripts; return the smallest unexplained one of the first batch with any.

    The second value is the number of scripts played.
    """
    tried = 0
    for batch in batched(_parts(script), AT_ONCE):
        tried += len(batch)
        found = [played for played in play(batch) if played is not None]
        if found:
            return min(found, key=lambda played: len(played.steps)), tried
    return None, tried


def _parts(script: Script) -> Iterator[Script]:
    """List smaller scripts: without one process, then without one part, larger parts first."""
    for client in sorted({step.client_id for step in script}):
        yield tuple(step for step in script if step.client_id != client)
    size = len(script) // 2
    while size:
        for start in reversed(range(0, len(script), size)):
            yield script[:start] + script[start + size :]
        size //= 2


def batched(items: Iterable[Script], size: int) -> Iterator[list[Script]]:
    """Split into lists of a size (in Python 3.12, `itertools.batched`)."""
    source = iter(items)
    while batch := list(islice(source, size)):
        yield batch
