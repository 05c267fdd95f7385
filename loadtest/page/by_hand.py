"""Routes for faults by hand: what can be broken, what that would do, inject, heal, heal all."""

# Locust's web interface has no types.
# mypy: disable-error-code="untyped-decorator, no-untyped-call"

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, jsonify, request

from loadtest.errors import LoadtestError
from loadtest.load_session import LoadSession

LONGEST_BYTES = 64 << 10
"""Of what is posted: a fault that lists a thousand members has less."""


def add_routes(blueprint: Blueprint, session: LoadSession) -> None:
    """Add the routes. Each takes JSON by POST, and answers with `refused` if nothing was done.

    `faults` takes `{"do": "offer" | "foresee" | "inject", "fault": {…}}`, with the fault as a file
    spells it, but for `at`; `faults/heal` takes `{"fault_id": …}`, or `{}` for all.
    """

    @blueprint.post("/faults", endpoint="faults")
    def faults() -> Response:
        """Say what can be broken, foresee a fault, or inject it."""
        posted = _posted()
        if posted.get("do") not in ("offer", "foresee", "inject"):
            return jsonify(refused="no such command; give offer, foresee or inject")
        return _asked(session, posted)

    @blueprint.post("/faults/heal", endpoint="heal")
    def heal() -> Response:
        """Heal a fault, or all."""
        fault_id = _posted().get("fault_id")
        if fault_id is None:
            return _asked(session, {"do": "heal_all"})
        return _asked(session, {"do": "heal", "fault_id": fault_id})


def _posted() -> Mapping[str, Any]:
    is_short = (request.content_length or 0) <= LONGEST_BYTES
    content = request.get_json(silent=True) if is_short else None
    return content if isinstance(content, dict) else {}


def _asked(session: LoadSession, command: Mapping[str, Any]) -> Response:
    if session.run is None or not session.run.goes_on:
        return jsonify(refused="no run is in progress; choose an experiment and press Start")
    try:
        return jsonify(session.run.ask(command))
    except LoadtestError as error:
        return jsonify(refused=str(error))
