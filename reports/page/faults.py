"""What a fault of the verdict hits and does, as `scenarios.faults` declares it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from scenarios.faults import About, about

Fault = Mapping[str, Any]
"""A fault as it stands in `verdict.json`."""


def declared(fault: Fault) -> About:
    """Return what a fault is; one whose name is not known is taken for one of a member."""
    name = fault["name"]
    return about(name) or About(
        hits="member", noun=name, meaning="", targets="", witness="", expects="", undo=""
    )


def hits_broker(fault: Fault) -> bool:
    """Return whether a fault hits a broker."""
    return declared(fault).hits == "broker"


def concerning(group: str, faults: Iterable[Fault]) -> list[Fault]:
    """List the faults that hit a group, or a broker and with it maybe every group."""
    return [fault for fault in faults if fault["group"] in (group, None) or hits_broker(fault)]


def counted(faults: Iterable[Fault]) -> Counter[str]:
    """Count the faults that were injected, by the nouns of their declarations."""
    return Counter(declared(one).noun for one in faults if one["injected_at_ms"] is not None)
