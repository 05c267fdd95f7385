"""What a client makes of a response: the process after it, as Kafka's consumers react."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    JoinResponse,
    LeaveResponse,
    Response,
    SyncResponse,
)
from reference_coordinator.frozen import replace_fields
from selftest.explore.scene import ENDED, IN, JOINED, OUT, WAITING, Process

FATAL = (Error.FENCED_INSTANCE_ID, Error.GROUP_MAX_SIZE_REACHED, Error.UNKNOWN_SERVER_ERROR)
"""Errors after which a consumer gives up."""


def heard(p: Process, response: Response, serial: int) -> Process:
    """Return a process after a response, which does what Kafka's clients do."""
    p = replace_fields(p, request="")
    error = response.error
    if isinstance(response, LeaveResponse):
        return Process(p.name, p.instance)
    if error == Error.NONE:
        if isinstance(response, JoinResponse):
            leads = response.members and not response.skip_assignment
            return replace_fields(
                p, phase=JOINED, member_id=response.member_id, generation=response.generation,
                serial=serial, leads=tuple(sorted(m for m, _, _ in response.members if leads)),
            )  # fmt: skip
        return replace_fields(p, phase=IN) if isinstance(response, SyncResponse) else p
    if error in FATAL:
        return replace_fields(p, phase=ENDED)
    if error == Error.MEMBER_ID_REQUIRED and isinstance(response, JoinResponse):
        return replace_fields(p, phase=OUT, member_id=response.member_id)
    if error == Error.UNKNOWN_MEMBER_ID:
        return replace_fields(p, phase=OUT, member_id="", generation=-1, leads=())
    if error == Error.ILLEGAL_GENERATION:
        return replace_fields(p, phase=OUT, generation=-1, leads=())
    if error == Error.REBALANCE_IN_PROGRESS or p.phase in WAITING:
        return replace_fields(p, phase=OUT, leads=())
    return p
