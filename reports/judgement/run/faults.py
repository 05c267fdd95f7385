"""The faults of a run and their outcomes, as its journal has them, and what they do to brokers."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

from reference_coordinator.replay import Outage, Parting, Stall
from reports.judgement.run.disturbance import CATCHING_UP_MS, BrokenWire
from reports.judgement.run.journal import Entry
from scenarios.faults import about

Fault = dict[str, Any]
"""A fault as the verdict lists it; times in ms, None for what the journal does not have."""
ON_WIRE = "net."
"""What the names of faults on the wire begin with."""
CLOCK_SKEW = "clock.skew"
REPLICATES_MS = 1_000.0
"""How long before a broker is cut off what it wrote may not have reached its replicas. These fetch
at once where the machine lets them; so long may a request take, too (`Tolerance.reply`)."""


def faults_of(journal: Iterable[Entry]) -> tuple[Fault, ...]:
    """Return the faults of a journal, in its order."""
    faults: dict[str, Fault] = {}
    for entry in journal:
        fault = faults.get(entry.get("fault_id") or "")
        if entry["event"] == "intent":
            faults[entry["fault_id"]] = _meant(entry)
        elif fault is None:
            continue
        elif entry["event"] == "injected":
            fault["injected_at_ms"] = entry["at_ms"]
            fault["log_lines"] = entry.get("log_lines")
        elif entry["event"] == "verified":
            fault["verified"], fault["witness"] = entry["verified"], entry["witness"]
        elif entry["event"] == "healed":
            fault["healed"], fault["healed_at_ms"] = entry["healed"], entry["at_ms"]
            fault["open"] = not entry["healed"]
    return tuple(faults.values())


def _meant(intent: Entry) -> Fault:
    """Return a fault that was never carried out."""
    args = intent.get("args") or {}
    broker = args.get("broker")
    return {
        "name": intent["fault"],
        "cause": intent.get("cause"),
        "target": intent["target"],
        "group": intent.get("group"),
        "broker": None if broker is None else str(broker),
        "clock_by_ms": args.get("by_ms") if intent["fault"] == CLOCK_SKEW else None,
        "meant_at_ms": intent["at_ms"],
        "injected_at_ms": None,
        "log_lines": None,
        "healed_at_ms": None,
        "verified": False,
        "witness": "",
        "healed": False,
        "open": intent.get("kind") == "recoverable",
    }


def killed_between(faults: Iterable[Fault]) -> Iterator[tuple[str, float, float]]:
    """Yield the brokers (ids) that were killed, and between when, in ms."""
    for fault in faults:
        if fault["injected_at_ms"] is not None and _done_to_broker(fault) == "killed":
            yield fault["broker"], fault["meant_at_ms"], fault["injected_at_ms"]


def unmeasured_kills(faults: Iterable[Fault]) -> Iterator[tuple[str, float, float]]:
    """Yield those of `killed_between` of which it is not known how long the log was then."""
    return killed_between(fault for fault in faults if fault["log_lines"] is None)


def restarts(faults: Iterable[Fault]) -> Iterator[tuple[str, float]]:
    """Yield the brokers (ids) that were killed or stopped, and when that was meant to be, in ms."""
    for fault in faults:
        if _done_to_broker(fault) in ("killed", "stopped"):
            yield fault["broker"], fault["meant_at_ms"]


def log_lines(faults: Iterable[Fault]) -> Mapping[tuple[str, float], int]:
    """Return how many lines the log of a killed broker had then, by its kill (id, ms)."""
    return {
        (fault["broker"], fault["injected_at_ms"]): fault["log_lines"]
        for fault in faults
        if fault["log_lines"] is not None
    }


def outages(faults: Iterable[Fault]) -> Iterator[Outage]:
    """Yield when brokers were down or paused, or gave leaderships up, and the time to catch up.

    A wall clock that is set off makes no write fail: Kafka's timers go by the other clock.
    """
    for fault in faults:
        known = about(fault["name"])
        if fault["name"] == CLOCK_SKEW:
            continue
        if fault["broker"] is not None:
            yield Outage(fault["meant_at_ms"], _healed_ms(fault) + _catches_up_ms(fault))
        elif known is not None and known.moves_leaders:
            moved_ms = fault["injected_at_ms"] or fault["meant_at_ms"]
            yield Outage(fault["meant_at_ms"], moved_ms + CATCHING_UP_MS)


def stalls(faults: Iterable[Fault]) -> Iterator[Stall]:
    """Yield when brokers were paused; one that was not resumed is paused to the end."""
    for fault in faults:
        if _done_to_broker(fault) == "paused":
            yield Stall(fault["broker"], fault["meant_at_ms"], _healed_ms(fault))


def partings(faults: Iterable[Fault]) -> Iterator[Parting]:
    """Yield when brokers were cut off from the others, or their packets to them were late.

    What a broker wrote just before may not have reached its replicas. One that was not healed is
    cut off to the end. What one wrote whose witness saw no parting may have been replicated.
    """
    for fault in faults:
        if network := _done_to_network(fault):
            meant_ms, injected_ms = fault["meant_at_ms"], fault["injected_at_ms"]
            parted = network == "part" and injected_ms is not None and fault["verified"]
            cut_ms = injected_ms if parted else inf
            healed_ms = _healed_ms(fault)
            until_ms = healed_ms + _catches_up_ms(fault)
            yield Parting(fault["broker"], meant_ms - REPLICATES_MS, cut_ms, healed_ms, until_ms)


def broken_wires(faults: Iterable[Fault]) -> Iterator[BrokenWire]:
    """Yield when faults broke the wire of members; one that was not healed lasts to the end."""
    for fault in faults:
        if fault["name"].startswith(ON_WIRE) and fault["group"]:
            meant_ms, target = fault["meant_at_ms"], fault["target"]
            yield BrokenWire(fault["group"], target, meant_ms, _healed_ms(fault))


def healed(faults: Iterable[Fault]) -> Iterator[tuple[str, float]]:
    """Yield the brokers (ids) that were seen to answer again, and when, in ms."""
    for fault in faults:
        if fault["broker"] is not None and fault["healed"]:
            yield fault["broker"], fault["healed_at_ms"]


def started_again(faults: Iterable[Fault]) -> Iterator[str]:
    """Yield the brokers (ids) that were down and started again, once for each time."""
    for fault in faults:
        if fault["healed"] and _done_to_broker(fault) in ("killed", "stopped"):
            yield fault["broker"]


def _healed_ms(fault: Fault) -> float:
    """Return when a fault was healed, in ms; infinity if it was not."""
    return float(fault["healed_at_ms"]) if fault["healed"] else float("inf")


def _catches_up_ms(fault: Fault) -> float:
    """Return how long after its end a fault of a broker may have writes fail, in ms.

    Where packets were lost or late, connections go on when their oldest packet is sent again: each
    time TCP waits twice as long, up to as long as it has waited so far (RFC 6298, 5.5).
    """
    if _done_to_network(fault) is None:
        return CATCHING_UP_MS
    return CATCHING_UP_MS + _healed_ms(fault) - float(fault["meant_at_ms"])


def _done_to_network(fault: Fault) -> str | None:
    """Return what a fault does to the network of its broker (`About.network`), if it does."""
    known = about(fault["name"])
    return known.network if known else None


def _done_to_broker(fault: Fault) -> str | None:
    """Return what a fault does to the process of its broker (`About.broker`), if it hits one."""
    known = about(fault["name"])
    return known.broker if known else None
