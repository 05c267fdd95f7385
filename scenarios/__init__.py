"""Experiments: what runs, which faults are injected, and what must hold.

In: a YAML file, or a name of the library that comes with the package (`library/*.yaml`).
Out: a validated, frozen `Experiment`, or a `ScenarioError` that lists every problem with its line.
It may import `kafka_protocol`; it uses neither a cluster nor the network.
"""

from scenarios.experiment import Experiment, json_schema
from scenarios.loading import find, load, named, names
from scenarios.problems import ScenarioError
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
