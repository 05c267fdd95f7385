"""Rows about requests that no log has, or may not have."""

from typing import Any

UNLOGGED = """
    group STRING, broker STRING, line LONG, from_ms DOUBLE, at_ms DOUBLE, what STRING, sure BOOLEAN
"""
"""Requests that no log has, or may not have (not `sure`), by the line before or behind them. They
came from `from_ms` to `at_ms`."""


def unlogged_row(
    broker: str, line: int, from_ms: float, until_ms: float, what: str, *, sure: bool = True
) -> dict[str, Any]:
    """Return a row of `UNLOGGED`, without the group."""
    return {
        "broker": broker,
        "line": line,
        "from_ms": from_ms,
        "at_ms": until_ms,
        "what": what,
        "sure": sure,
    }
