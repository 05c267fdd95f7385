"""The files of a run as texts and JSON; the faults of its journal, and what they do."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, cast

from reference_coordinator.replay import Outage, Parting, Stall
from reports.judgement.errors import EvidenceError
from reports.judgement.run.disturbance import Absence, Act
from reports.judgement.run.journal import Entry, Fault, Form, healed_ms, lacks, parse, read
from reports.timing import CATCHING_UP_MS, REPLICATES_MS, UP_MS
from scenarios.faults import BY_HAND, FAULTS, NETWORKS
from scenarios.regular_files import open_regular, read_regular

EVIDENCE = ("*.json*", "*.yaml", "*/*/group.log*", "*/*/jvm-*.log")
"""The files of a run that are read, as globs."""
OF_A_RUN = ("environment.json", "experiment.yaml", "plan.json", "journal.jsonl")
LARGEST = 256 << 20  # how many bytes a file of a run may have that is read as a whole
JOURNAL = "journal.jsonl"
PLAN_BY_HAND = "by-hand.json"
"""The plan of a run with what was injected by hand, for `groupquake run --plan`."""


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
        "id": intent["fault_id"],
        "args": args,
        "name": intent["fault"],
        "cause": intent.get("cause"),
        "by_hand": intent["fault_id"].startswith(BY_HAND),
        "target": intent["target"],
        "group": intent.get("group"),
        "broker": None if broker is None else str(broker),
        "clock_by_ms": args.get("by_ms") if _trait(intent["fault"], "needs") == "clock" else None,
        "meant_at_ms": intent["at_ms"],
        "injected_at_ms": None,
        "log_lines": None,
        "healed_at_ms": None,
        "verified": False,
        "witness": "",
        "healed": False,
        "open": intent.get("kind") == "recoverable",
    }


@dataclass(frozen=True)
class RunFaults:
    """The small files of a run: its journal, and what its faults did to brokers and clients, in ms.

    Each problem of a file is an `EvidenceError` that names it.
    """

    path: Path
    uri: str = ""
    """Where the run folder is, if `path` holds only a copy of its small files."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """The files that are at `uri` alone, by their names in the run folder, and their bytes."""

    @property
    def place(self) -> str:
        """The run folder, as messages name it."""
        return self.uri or str(self.path)

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.place.rpartition("/")[2]

    def _json(self, name: str, form: Form) -> dict[str, Any]:
        try:
            content = parse(self._bytes(name))
            wrong = lacks(content, form)
        except ValueError as error:
            wrong = str(error)
        if wrong is not None:
            raise EvidenceError(f"{self.place}/{name}: {wrong}; the run was cut off or altered")
        return cast(dict[str, Any], content)

    @property
    def is_there(self) -> bool:
        """Whether the folder has anything that only a run writes."""
        return any(os.path.lexists(self.path / name) for name in OF_A_RUN)

    def require_regular(self) -> None:
        """Raise EvidenceError where evidence on this machine cannot be opened, or may never end.

        Spark, which opens most of it, would wait for a FIFO, and names no file that it cannot open.
        """
        for file in sorted(file for names in EVIDENCE for file in self.path.glob(names)):
            try:
                open_regular(file).close()
            except OSError as error:
                raise self._unreadable(str(file.relative_to(self.path)), error) from error

    def _bytes(self, name: str) -> bytes:
        try:
            return read_regular(self._there(name), LARGEST)
        except OSError as error:
            raise self._unreadable(name, error) from error

    def _size(self, name: str) -> int | None:
        """Return how many bytes a file has, here or elsewhere; None without one."""
        file = self.path / name
        return file.stat().st_size if file.is_file() else self.elsewhere.get(name)

    def _there(self, name: str) -> Path:
        file = self.path / name
        if not self.path.is_dir():
            raise EvidenceError(f"{self.path}: no such run folder; `ls runs` lists those there are")
        if not os.path.lexists(file):
            raise EvidenceError(
                f"{self.place}/{name}: missing; {self.place} is not the folder of a run"
            )
        return file

    def _unreadable(self, name: str, error: OSError) -> EvidenceError:
        return EvidenceError(
            f"{self.place}/{name}: cannot be read ({error.strerror}); check the file"
        )

    def _altered(self, wrong: str, name: str = "environment.json") -> EvidenceError:
        return EvidenceError(f"{self.place}/{name}: {wrong}; it was altered")

    @cached_property
    def journal(self) -> tuple[Entry, ...]:
        """The fault journal's complete entries."""
        return read(f"{self.place}/{JOURNAL}", self._bytes(JOURNAL))

    def entries(self, *events: str) -> Iterator[Entry]:
        """Yield the journal's entries of some events."""
        return (entry for entry in self.journal if entry["event"] in events)

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """The faults and their outcomes, in the order of the journal."""
        return faults_of(self.journal)

    @property
    def by_hand(self) -> int:
        """How many faults somebody injected by hand: no file or forecast knows of them."""
        return sum(fault["by_hand"] for fault in self.faults)

    @cached_property
    def killed_between(self) -> tuple[tuple[str, float, float], ...]:
        """The brokers (ids) that were killed, and between when."""
        done = (f for f in self._done("killed") if f["injected_at_ms"] is not None)
        return tuple((f["broker"], f["meant_at_ms"], f["injected_at_ms"]) for f in done)

    @cached_property
    def log_lines(self) -> Mapping[tuple[str, float], int]:
        """How many lines the log of a killed broker had then, by its id and when that was."""
        known = (fault for fault in self._done("killed") if fault["log_lines"] is not None)
        return {(fault["broker"], fault["injected_at_ms"]): fault["log_lines"] for fault in known}

    @cached_property
    def restarts(self) -> tuple[tuple[str, float], ...]:
        """The brokers (ids) that were killed or stopped, and when that was meant to be."""
        return tuple((f["broker"], f["meant_at_ms"]) for f in self._done("killed", "stopped"))

    @cached_property
    def stalls(self) -> tuple[Stall, ...]:
        """When brokers were paused; one that was not resumed is paused to the end."""
        paused = self._done("paused")
        return tuple(Stall(f["broker"], f["meant_at_ms"], healed_ms(f)) for f in paused)

    @cached_property
    def outages(self) -> tuple[Outage, ...]:
        """When brokers were down or paused, or gave leaderships up, and the time to catch up."""
        return tuple(filter(None, map(outage_of, self.faults)))

    @cached_property
    def partings(self) -> tuple[Parting, ...]:
        """When brokers were cut off from the others, or their packets to them were late."""
        return tuple(filter(None, map(parting_of, self.faults)))

    @cached_property
    def absences(self) -> tuple[Absence, ...]:
        """When faults on members had clients down."""
        return absences(self.faults)

    def _done(self, *what: str) -> Iterator[Fault]:
        """Yield the faults that did one of these to the process of a broker (`Fault.process`)."""
        for fault in self.faults:
            if _trait(fault["name"], "process") in what:
                yield fault


def _trait(name: str, attribute: str) -> Any:
    """Return what the class of a fault says; None if it says nothing, or a later version has it."""
    return getattr(FAULTS.get(name), attribute, None)


def outage_of(fault: Fault) -> Outage | None:
    """Return when a fault had a broker down or paused, or leaderships moved; None if it did not.

    A wall clock that is set off makes no write fail: Kafka's timers go by the other clock.
    """
    name, meant_ms = fault["name"], fault["meant_at_ms"]
    if _trait(name, "needs") == "clock":
        return None
    if fault["broker"] is not None:
        return Outage(meant_ms, _caught_up_ms(fault))
    if not _trait(name, "moves_leaders"):
        return None
    return Outage(meant_ms, (fault["injected_at_ms"] or meant_ms) + CATCHING_UP_MS)


def parting_of(fault: Fault) -> Parting | None:
    """Return when a fault cut a broker off from the others, or had its packets late, if it did.

    What a broker wrote just before may not have reached its replicas. One that was not healed is
    cut off to the end. What one wrote whose witness saw no parting may have been replicated.
    """
    network, cut_ms = _done_to_network(fault), fault["injected_at_ms"]
    if network is None:
        return None
    if network != "part" or not fault["verified"] or cut_ms is None:
        cut_ms = inf
    from_ms = fault["meant_at_ms"] - REPLICATES_MS
    return Parting(fault["broker"], from_ms, cut_ms, healed_ms(fault), _caught_up_ms(fault))


def act_of(fault: Fault, noticed_ms: float) -> Act:
    """Return to which members a fault is a cause to come or go, and until when.

    A fault that `excuses` members does so for the same time. Members notice within `noticed_ms`
    what a topic is. A fault without an end acts to the end.
    """
    name, args, outage = fault["name"], fault["args"], outage_of(fault)
    hits, ends_ms = _trait(name, "hits"), healed_ms(fault)
    if outage is not None:
        ends_ms = outage.until_ms
    elif _trait(name, "one_shot"):
        ends_ms = fault["injected_at_ms"] or inf
    of_all = outage is not None or fault["broker"] is not None or hits == "topic"
    group = None if of_all else fault["group"]
    named = [*(args.get("members") or fault["target"].split(", ")), args.get("duplicate")]
    return Act(
        "fault",
        group,
        frozenset(filter(None, named) if group and hits == "member" else ()),
        fault["meant_at_ms"],
        ends_ms + noticed_ms * (hits == "topic"),
        f"{name} of {fault['target']}",
        freezes=_trait(name, "undo_name") == "resume-member",
        gives_id=not args.keys().isdisjoint(("members", "duplicate", "instance_id")),
        excuses=bool(_trait(name, "excuses")),
    )


def _caught_up_ms(fault: Fault) -> float:
    """Return until when a fault of a broker may have writes fail, in ms.

    Where packets were lost or late, connections go on when their oldest packet is sent again: each
    time TCP waits twice as long, up to as long as it has waited so far (RFC 6298, 5.5).
    """
    until_ms = healed_ms(fault)
    waits_ms = until_ms - float(fault["meant_at_ms"]) if _done_to_network(fault) else 0.0
    return until_ms + CATCHING_UP_MS + waits_ms


def _done_to_network(fault: Fault) -> str | None:
    """Return what a fault does to the network of its broker (`Fault.needs`), if it does."""
    needs: str | None = _trait(fault["name"], "needs")
    return needs if needs in NETWORKS else None


def absences(faults: Iterable[Fault]) -> tuple[Absence, ...]:
    """Return when faults have clients down.

    A member is started again no sooner than `down_for_ms` after it was down. A run that is ended
    early heals sooner: nothing is known then. A duplicate is down before its first fault, between
    two, and after its last one.
    """
    of_groups = [fault for fault in faults if fault["group"]]
    found, duplicates = list[Absence](), dict[tuple[str, str], Absence]()
    for fault in of_groups:
        if (from_ms := fault["injected_at_ms"]) is None:
            continue
        group, args, ended_ms = fault["group"], fault["args"], healed_ms(fault)
        what = f"fault {fault['id']} ({fault['name']})"
        of_member = _trait(fault["name"], "hits") == "member"
        if of_member and type(down_for_ms := args.get("down_for_ms")) is int:
            until_ms = from_ms + down_for_ms - UP_MS
            if ended_ms >= until_ms:
                down = f"{what} had it down from {from_ms} on"
                found.append(Absence(group, fault["target"], from_ms, until_ms, down))
        elif isinstance(client := args.get("duplicate"), str):
            meant_ms = fault["meant_at_ms"]
            first = Absence(group, client, -inf, inf, f"{what} starts it at {meant_ms}")
            before = duplicates.get((group, client), first)
            found.append(before._replace(until_ms=meant_ms - UP_MS))
            ended = f"{what} ended it at {ended_ms:.0f}"
            duplicates[group, client] = Absence(group, client, ended_ms, inf, ended)
    every = (*found, *duplicates.values())
    return tuple(one._replace(held_ms=_held_ms(one, of_groups)) for one in every)


def _held_ms(down: Absence, faults: Iterable[Fault]) -> float:
    """Return how long the tap may hold what a client had sent when it went down, by its rules."""
    longest_ms = 0.0
    for fault in faults:
        over_ms, most_ms = healed_ms(fault), inf
        mine = (fault["group"], fault["target"]) == (down.group, down.client)
        action = _trait(fault["name"], "action")  # those on the wire have one
        if action not in ("delay", "hold") or not mine or fault["meant_at_ms"] > down.from_ms:
            continue
        if action == "delay":
            times = (fault["args"].get("latency_ms"), fault["args"].get("jitter_ms"))
            most_ms = sum(one for one in times if type(one) is int)
            over_ms += most_ms
        longest_ms = max(longest_ms, min(most_ms, over_ms - down.from_ms))
    return longest_ms
