"""The faults of a run and their outcomes, as its journal has them, and what they do to brokers."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf

from reference_coordinator.replay import Outage, Parting, Stall
from reports.judgement.run.disturbance import CATCHING_UP_MS, BrokenWire
from reports.judgement.run.journal import Entry, Fault, healed_ms
from scenarios.faults import about

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
    for fault in _done(faults, "killed"):
        if fault["injected_at_ms"] is not None:
            yield fault["broker"], fault["meant_at_ms"], fault["injected_at_ms"]


def unmeasured_kills(faults: Iterable[Fault]) -> Iterator[tuple[str, float, float]]:
    """Yield those of `killed_between` of which it is not known how long the log was then."""
    return killed_between(fault for fault in faults if fault["log_lines"] is None)


def restarts(faults: Iterable[Fault]) -> Iterator[tuple[str, float]]:
    """Return the brokers (ids) that were killed or stopped, and when that was meant, in ms."""
    return ((f["broker"], f["meant_at_ms"]) for f in _done(faults, "killed", "stopped"))


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
        known, meant_ms = about(fault["name"]), fault["meant_at_ms"]
        if fault["name"] == CLOCK_SKEW:
            continue
        if fault["broker"] is not None:
            yield Outage(meant_ms, _caught_up_ms(fault))
        elif known is not None and known.moves_leaders:
            yield Outage(meant_ms, (fault["injected_at_ms"] or meant_ms) + CATCHING_UP_MS)


def stalls(faults: Iterable[Fault]) -> Iterator[Stall]:
    """Return when brokers were paused; one that was not resumed is paused to the end."""
    paused = _done(faults, "paused")
    return (Stall(f["broker"], f["meant_at_ms"], healed_ms(f)) for f in paused)


def partings(faults: Iterable[Fault]) -> Iterator[Parting]:
    """Yield when brokers were cut off from the others, or their packets to them were late.

    What a broker wrote just before may not have reached its replicas. One that was not healed is
    cut off to the end. What one wrote whose witness saw no parting may have been replicated.
    """
    for fault in faults:
        if network := _done_to_network(fault):
            parted = network == "part" and fault["injected_at_ms"] is not None and fault["verified"]
            yield Parting(
                fault["broker"],
                fault["meant_at_ms"] - REPLICATES_MS,
                fault["injected_at_ms"] if parted else inf,
                healed_ms(fault),
                _caught_up_ms(fault),
            )


def broken_wires(faults: Iterable[Fault]) -> Iterator[BrokenWire]:
    """Return when faults broke the wire of members; one that was not healed lasts to the end."""
    return (
        BrokenWire(fault["group"], fault["target"], fault["meant_at_ms"], healed_ms(fault))
        for fault in faults
        if fault["name"].startswith(ON_WIRE) and fault["group"]
    )


def healed(faults: Iterable[Fault]) -> Iterator[tuple[str, float]]:
    """Return the brokers (ids) that were seen to answer again, and when, in ms."""
    of_brokers = (f for f in faults if f["broker"] is not None and f["healed"])
    return ((fault["broker"], fault["healed_at_ms"]) for fault in of_brokers)


def started_again(faults: Iterable[Fault]) -> Iterator[str]:
    """Return the brokers (ids) that were down and started again, once for each time."""
    return (f["broker"] for f in _done(faults, "killed", "stopped") if f["healed"])


def _caught_up_ms(fault: Fault) -> float:
    """Return until when a fault of a broker may have writes fail, in ms.

    Where packets were lost or late, connections go on when their oldest packet is sent again: each
    time TCP waits twice as long, up to as long as it has waited so far (RFC 6298, 5.5).
    """
    until_ms = healed_ms(fault)
    waits_ms = until_ms - float(fault["meant_at_ms"]) if _done_to_network(fault) else 0.0
    return until_ms + CATCHING_UP_MS + waits_ms


def _done_to_network(fault: Fault) -> str | None:
    """Return what a fault does to the network of its broker (`About.network`), if it does."""
    known = about(fault["name"])
    return known.network if known else None


def _done(faults: Iterable[Fault], *what: str) -> Iterator[Fault]:
    """Yield the faults that do one of these to the process of their broker (`About.broker`)."""
    for fault in faults:
        known = about(fault["name"])
        if known is not None and known.broker in what:
            yield fault
