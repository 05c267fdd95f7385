"""The lines of the control channel: a JSON object for each request and reply. No sockets here."""

import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

from loadtest.errors import LoadtestError, WorkerGoneError

TOKEN_VARIABLE = "GROUPQUAKE_CONTROL_TOKEN"  # noqa: S105 (the variable's name, no secret)
"""The variable of the environment that the token comes in."""

Command = Callable[[dict[str, Any]], Any]
"""Gets the whole request and returns a JSON value."""
Commands = Mapping[str, Command]
"""Commands by name."""


def has_token(line: bytes, token: str) -> bool:
    """Return whether the first line of a connection has the right token."""
    try:
        offered = json.loads(line)["token"]
    except (ValueError, TypeError, KeyError):
        return False
    return isinstance(offered, str) and hmac.compare_digest(offered.encode(), token.encode())


def answer(line: bytes, commands: Commands) -> bytes:
    """Carry a request line out and return the reply line; a refusal is a reply too."""
    request: dict[str, Any] = {}
    try:
        request = _parsed(line)
        reply = carry_out(request, commands)
    except LoadtestError as error:
        reply = {"ok": False, "error": str(error)}
    return json.dumps({"id": request.get("id"), **reply}).encode() + b"\n"


def carry_out(request: dict[str, Any], commands: Commands) -> dict[str, Any]:
    """Carry a request out; return its `result`, or the `error`.

    `gone` says that the member is gone with the worker that ran it.
    """
    try:
        return {"ok": True, "result": _command_named(request["do"], commands)(request)}
    except WorkerGoneError as error:
        return {"ok": False, "error": str(error), "gone": True}
    except LoadtestError as error:
        return {"ok": False, "error": str(error)}


def member_of(request: dict[str, Any]) -> str:
    """Return the member name in a request. Raises LoadtestError if there is none."""
    name = request.get("member")
    if not isinstance(name, str):
        raise LoadtestError(f'{request.get("do")} needs the name of a member: "member"')
    return name


def instance_id_of(request: dict[str, Any]) -> str | None:
    """Return the instance id in a request, or None for a dynamic member.

    Raises LoadtestError for any other value.
    """
    given = request["instance_id"]
    if given is None or (isinstance(given, str) and given):
        return given
    raise LoadtestError(
        f'{request.get("do")} takes "instance_id" as a name, or as null for a dynamic member'
    )


def _command_named(name: str, commands: Commands) -> Callable[[dict[str, Any]], Any]:
    try:
        return commands[name]
    except KeyError:
        raise LoadtestError(f"cannot do {name!r}; known: {', '.join(sorted(commands))}") from None


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except ValueError as error:
        raise LoadtestError(f"not a line of JSON ({error})") from error
    if not isinstance(request, dict) or not isinstance(request.get("do"), str):
        raise LoadtestError('a request is an object with "id" and "do"')
    return request
