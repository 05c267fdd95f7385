"""What a fault of the verdict hits and does, as `scenarios.faults` declares it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from inspect import cleandoc
from typing import Any, NamedTuple

Fault = Mapping[str, Any]
"""A fault as it stands in `verdict.json`."""


class Declared(NamedTuple):
    """What a fault hits, what it is counted as, and what it does, and if it was done by hand."""

    hits: str
    noun: str
    one_shot: bool
    meaning: str


def declared(fault: Fault) -> Declared:
    """Return what a fault is; one whose name is not known is taken for one of a member."""
    from scenarios.faults import FAULTS  # noqa: PLC0415 (the models load slowly)

    if (kind := FAULTS.get(fault["name"])) is None:
        return Declared("member", fault["name"], one_shot=False, meaning="")
    summary = cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    by_hand = "by hand: " if fault.get("by_hand") else ""
    return Declared(kind.hits, kind.noun, kind.one_shot, by_hand + " ".join(summary.split()))


def hits_broker(fault: Fault) -> bool:
    """Return whether a fault hits a broker."""
    return declared(fault).hits == "broker"


def concerning(group: str, faults: Iterable[Fault]) -> list[Fault]:
    """List the faults that hit a group, or a broker and with it maybe every group."""
    return [fault for fault in faults if fault["group"] in (group, None) or hits_broker(fault)]


def counted(faults: Iterable[Fault]) -> Counter[str]:
    """Count the faults that were injected, by the nouns of their declarations."""
    return Counter(declared(one).noun for one in faults if one["injected_at_ms"] is not None)
