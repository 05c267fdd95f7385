"""The orders about members that the control channel takes."""

from typing import Any

from loadtest.client_pool import Fleet
from loadtest.protocol import Verbs, instance_id_of, member_of


def verbs(fleet: Fleet) -> Verbs:
    """Return what can be asked of the members; every order waits until it is carried out.

    The answer is the member's row, and for `duplicate` the new process's `client_id` and `pid`.
    """
    return {
        "members": lambda _: fleet.members(),
        "start": lambda request: _start(fleet, request),
        "stop": lambda request: fleet.seat(member_of(request)).stop(),
        "kill": lambda request: fleet.seat(member_of(request)).kill(),
        "duplicate": lambda request: fleet.seat(member_of(request)).duplicate(),
        "end-duplicate": lambda request: fleet.seat(member_of(request)).end_duplicate(),
    }


def _start(fleet: Fleet, request: dict[str, Any]) -> dict[str, Any]:
    seat = fleet.seat(member_of(request))
    if "instance_id" in request:
        return seat.start_as(instance_id_of(request))
    return seat.start()
