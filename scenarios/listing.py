"""What the library holds: the names of its experiments, and the topics that they are listed by.

It imports no models, which load slowly.
"""

from collections.abc import Mapping
from pathlib import Path

LIBRARY = Path(__file__).parent / "library"

TOPICS: Mapping[str, str] = {
    "demo": "To begin with",
    "by-hand": "Faults by hand, on the live page",
    "restart": "Members restart, and change between static and dynamic",
    "members": "Members crash, freeze, share an instance id, are removed",
    "failover": "Brokers and coordinators fail, restart, move",
    "net": "The network is slow, is cut, loses answers",
    "topics": "Topics change",
    "wire": "Corners of the protocol, by scripted requests",
    "defect": "Known defects of Kafka: what each release does",
    "never-shipped": "Policies that Kafka never shipped, on the oracle",
    "big": "Thousands of members",
}
"""Titles by the first tag of an experiment, in the order in which `groupquake list` has them."""


def names() -> tuple[str, ...]:
    """Return the names of the library's experiments, sorted."""
    return tuple(sorted(path.stem for path in LIBRARY.glob("*.yaml")))
