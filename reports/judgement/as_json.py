"""Findings and departures as they stand in `verdict.json`, each with its place in a log."""

from math import isfinite
from typing import Any

from reports.judgement.findings import Finding
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.run.disturbance import Disturbance

Json = dict[str, Any]


def finding(number: int, one: Finding, places: LogPlaces, times: int = 1) -> Json:
    """Write a finding; it stands for so many of one cause."""
    return {
        "number": number,
        "kind": one.kind,
        "root": one.root is None,
        "follows_from": None if one.root is None else one.root + 1,
        "proven": one.proven,
        "group": one.group,
        "at_ms": round(one.at_ms, 3),
        "expected": one.expected,
        "observed": one.observed,
        "log": _place(one.broker, one.line, places),
        **({"history": one.history} if one.history else {}),
        **({"may_be": one.may_be.because} if one.may_be else {}),
        **({"times": times} if times > 1 else {}),
    }


def disturbance(one: Disturbance, explains: int) -> Json:
    """Write a disturbance; it explains so many findings and counts. None stands for no end."""
    ms = lambda at_ms: round(at_ms) if isfinite(at_ms) else None
    return {
        "source": one.source,
        "broker": one.broker or None,
        "groups": None if one.groups is None else sorted(one.groups),
        "from_ms": ms(one.from_ms),
        "until_ms": ms(one.until_ms),
        "because": one.because,
        "explains": explains,
    }


def departure(row: Json, places: LogPlaces) -> Json:
    """Write a departure from KIP-345."""
    return {
        "group": row["group"],
        "at_ms": round(row["at_ms"], 3),
        "request": f"{row['api']} of {row['client_id']}",
        "promised": row["expected"],
        "observed": row["observed"],
        "log": _place(row["broker"], row["line"], places),
    }


def _place(broker: str, line: int, places: LogPlaces) -> Json:
    """Tell where a line stands; a difference without a line has no broker."""
    file, number = places.place(broker, line) if broker else ("", 0)
    return {"broker": broker, "file": file, "line": number}
