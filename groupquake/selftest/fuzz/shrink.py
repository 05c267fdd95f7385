"""Making an unexplained sequence small: steps are left out as long as it stays unexplained.

Every smaller script is played to the broker again, many at a time. What depends on how threads of
the broker happened to run may not come again; then the smallest that did is what is left.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from groupquake.selftest.fuzz.script import Step
from groupquake.selftest.fuzz.sequence import Played

Script = tuple[Step, ...]
Trial = Callable[[Sequence[Script]], list[Played | None]]
"""Plays scripts; hands out those that are unexplained, None for the others, in the same places."""

AT_ONCE = 24
TRIALS = 240
"""So many scripts are tried at most."""


def shrink(script: Script, trial: Trial) -> Played | None:
    """Return the smallest sequence found that is still unexplained; None if none was again."""
    (smallest,) = trial([script])
    tried = 1
    while smallest is not None and tried < TRIALS:
        found, cost = _smaller(smallest.steps, trial)
        tried += cost
        if found is None:
            break
        smallest = found
    return smallest


def _smaller(script: Script, trial: Trial) -> tuple[Played | None, int]:
    """Try scripts with less in them; return the smallest of the first lot that has any.

    With it comes how many were tried.
    """
    tried = 0
    for lot in batched(_parts(script), AT_ONCE):
        tried += len(lot)
        found = [played for played in trial(lot) if played is not None]
        if found:
            return min(found, key=lambda played: len(played.steps)), tried
    return None, tried


def _parts(script: Script) -> Iterator[Script]:
    """List scripts with less in them: without a process, without a part, the larger parts first."""
    for client in sorted({step.client_id for step in script}):
        yield tuple(step for step in script if step.client_id != client)
    size = len(script) // 2
    while size:
        for start in reversed(range(0, len(script), size)):
            yield script[:start] + script[start + size :]
        size //= 2


def batched(items: Iterable[Script], size: int) -> Iterator[list[Script]]:
    """Cut into lists of a size (Python 3.12 has it)."""
    source = iter(items)
    while lot := list(islice(source, size)):
        yield lot
