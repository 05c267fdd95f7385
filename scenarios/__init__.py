"""Experiments: what runs, which faults are injected, and what must hold.

In: a YAML file, or a name of the library that comes with the package (`library/*.yaml`).
Out: a validated, frozen `Experiment`, or a `ScenarioError` that lists every problem with its line.
It may import `kafka_protocol`; it uses neither a cluster nor the network.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scenarios.problems import ScenarioError

if TYPE_CHECKING:
    from scenarios.experiment import Experiment, json_schema
    from scenarios.listing import names
    from scenarios.loading import find, load, named
    from scenarios.setup import MemberSpec

__all__ = [
    "Experiment",
    "MemberSpec",
    "ScenarioError",
    "find",
    "json_schema",
    "load",
    "named",
    "names",
]


def __getattr__(name: str) -> Any:
    """Import what needs the models, which load slowly, when it is asked for (PEP 562)."""
    for module in ("listing", "experiment", "loading", "setup") if name in __all__ else ():
        found = import_module(f"scenarios.{module}")
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
