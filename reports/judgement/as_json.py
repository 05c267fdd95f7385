"""Findings and departures as they stand in `verdict.json`, each with its place in a log."""

from typing import Any

from reports.judgement.findings import Finding
from reports.judgement.log.log_places import LogPlaces

Json = dict[str, Any]


def finding(number: int, one: Finding, places: LogPlaces) -> Json:
    """Write a finding."""
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
