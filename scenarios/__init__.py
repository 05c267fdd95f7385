"""Experiments: what runs, what is broken on purpose, and what must hold.

In: a YAML file, or a name of the library that comes with the package (`library/*.yaml`).
Out: a validated, frozen `Experiment`, or a `ScenarioError`: every problem, its line, a way out.
It may import nothing of ours; reading one touches neither a cluster nor the network.
"""

from scenarios.experiment import Experiment
from scenarios.loading import load, named, names
from scenarios.members import MemberSpec
from scenarios.model import Fault, GroupBounce, LeaderMemberOf, MemberRestart, Names, Target
from scenarios.problems import ScenarioError
from scenarios.schema import json_schema

__all__ = [
    "Experiment",
    "Fault",
    "GroupBounce",
    "LeaderMemberOf",
    "MemberRestart",
    "MemberSpec",
    "Names",
    "ScenarioError",
    "Target",
    "json_schema",
    "load",
    "named",
    "names",
]
