"""What a fault of the verdict hits and does, as `scenarios.faults` declares it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from scenarios.faults import about

Fault = Mapping[str, Any]
"""A fault as it stands in `verdict.json`."""


def hits_broker(fault: Fault) -> bool:
    """Return whether a fault hits a broker."""
    known = about(fault["name"])
    return known is not None and known.hits == "broker"


def hits_group(fault: Fault) -> bool:
    """Return whether a fault hits a whole group, or its topics: it names no member."""
    known = about(fault["name"])
    return known is not None and known.hits in ("group", "topic")


def one_shot(fault: Fault) -> bool:
    """Return whether a fault is a single request, with nothing to heal."""
    known = about(fault["name"])
    return known is not None and known.one_shot


def concerning(group: str, faults: Iterable[Fault]) -> list[Fault]:
    """List the faults that hit a group, or a broker and with it maybe every group."""
    return [fault for fault in faults if fault["group"] in (group, None) or hits_broker(fault)]


def meaning(fault: Fault) -> str:
    """Say what a fault does; an empty text if its name is not known."""
    known = about(fault["name"])
    return known.meaning if known else ""


def counted(faults: Iterable[Fault]) -> Counter[str]:
    """Count the faults that were injected, by the nouns of their declarations."""
    injected = (fault["name"] for fault in faults if fault["injected_at_ms"] is not None)
    return Counter(known.noun if (known := about(name)) else name for name in injected)
