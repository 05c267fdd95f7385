"""What must hold after every step of the coordinator, as the protocol and KIP-345 promise it.

In goes one step: the scene before and after, the event and its effects; out come the invariants
that it breaks.
"""

from collections.abc import Callable, Iterator, Mapping
from inspect import isfunction

from selftest.explore.invariants import of_groups, of_members
from selftest.explore.scene import Stepped

__all__ = ["INVARIANTS", "Stepped", "broken"]

CHECKS: Mapping[str, Callable[[Stepped], Iterator[str]]] = {
    name: check
    for module in (of_groups, of_members)
    for name, check in vars(module).items()
    if isfunction(check) and check.__module__ == module.__name__ and not name.startswith("_")
}
"""Each public function of these modules is an invariant of its name, which its docstring words."""
INVARIANTS = {name: (check.__doc__ or "").strip(".") for name, check in CHECKS.items()}
"""Each invariant in words, by its name."""


def broken(step: Stepped) -> Iterator[str]:
    """Yield the invariants that a step breaks, each with what broke it: `name: detail`."""
    for name, check in CHECKS.items():
        for detail in check(step):
            yield f"{name}: {detail}"
