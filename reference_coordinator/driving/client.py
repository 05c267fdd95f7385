"""A client of one group, as a value: what it asks next, and what it makes of a response.

It does as Kafka's consumers do. Who drives it says when it sends a request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from kafka_protocol.bodies import BODIES, of_version
from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    JoinResponse,
    LeaveResponse,
    Response,
    SyncResponse,
)
from reference_coordinator.frozen import frozen_dataclass, replace_fields

Json = dict[str, Any]
METADATA = "AAEAAAABAAZvcmRlcnMAAAAA"
"""A subscription to the topic `orders`, as base64."""
SHARE = "AAEAAAAA"
"""An assignment without partitions, as base64."""
COMMITTED = (
    {
        "name": "orders",
        "partitions": (
            {"partitionIndex": 0, "committedOffset": 1, "committedLeaderEpoch": -1,
             "committedMetadata": ""},
        ),
    },
)  # fmt: skip
"""What a commit commits unless its caller says otherwise."""
FATAL = (Error.FENCED_INSTANCE_ID, Error.GROUP_MAX_SIZE_REACHED, Error.UNKNOWN_SERVER_ERROR)
"""Errors after which a consumer gives up."""


class Phase(StrEnum):
    """What a client does next."""

    OUT = "out"
    """JoinGroup, with its member id if it has one."""
    JOINING = "joining"
    """Its JoinGroup waits."""
    JOINED = "joined"
    """SyncGroup."""
    SYNCING = "syncing"
    """Its SyncGroup waits."""
    IN = "in"
    """It has its share of the partitions."""
    ENDED = "ended"
    """Nothing: its error is fatal, or it has left."""


OUT, JOINING, JOINED, SYNCING, IN, ENDED = Phase
WAITING = (JOINING, SYNCING)


@dataclass(eq=False)
class Asked:
    """A request of a client as it was then; the oracle reads it as it reads an observed one."""

    id: str
    client: "Client"
    api: str
    api_version: int
    request: Mapping[str, Any]
    at_ms: float
    client_host: str = "/127.0.0.1"

    @property
    def client_id(self) -> str:
        """The client id of the request header."""
        return self.client.name

    @property
    def response_fields(self) -> Mapping[str, Any]:
        """Nothing: the response is not there yet."""
        return {}


@frozen_dataclass(frozen=True)
class Client:
    """One process of a member.

    `generation` is -1 and `member_id` empty until it is given them. `leads` are the members that
    it was listed as their leader; `request` is the one that has no response yet.
    """

    name: str
    instance: str | None = None
    session_ms: int = 45_000
    rebalance_ms: int = 60_000
    metadata: str = METADATA
    phase: Phase = OUT
    member_id: str = ""
    generation: int = -1
    leads: tuple[str, ...] = ()
    request: str = ""

    @property
    def has_joined(self) -> bool:
        """Whether it takes itself for a member."""
        return self.generation >= 0 and self.phase is not ENDED

    @property
    def next_api(self) -> str:
        """What it asks next, unless it commits or leaves."""
        return {OUT: "JOIN_GROUP", JOINED: "SYNC_GROUP", IN: "HEARTBEAT"}.get(self.phase, "")

    def restarted(self) -> Self:
        """Return the next process of its member, which knows nothing of the group."""
        return replace_fields(self, phase=OUT, member_id="", generation=-1, leads=(), request="")

    def sending(self, api: str, request: str) -> Self:
        """Return the client while a request of its own has no response."""
        phase = {"JOIN_GROUP": JOINING, "SYNC_GROUP": SYNCING}.get(api, self.phase)
        return replace_fields(self, request=request, phase=phase)

    def body(self, api: str, group: str, version: int, **more: Any) -> Json:
        """Return the body of a request; `more` are other values of its fields."""
        values: Json = {
            "groupId": group,
            "memberId": self.member_id,
            "groupInstanceId": self.instance,
            "generationId": self.generation,
            "protocolType": "consumer",
            "protocolName": "range",
            "joinReason": 0,
        }
        if api == "JOIN_GROUP":
            values["sessionTimeoutMs"] = self.session_ms
            values["rebalanceTimeoutMs"] = self.rebalance_ms
            values["protocols"] = [{"name": "range", "metadata": self.metadata}]
        elif api == "SYNC_GROUP":
            values["assignments"] = [{"memberId": m, "assignment": SHARE} for m in self.leads]
        elif api == "LEAVE_GROUP":
            who = {"memberId": self.member_id, "groupInstanceId": self.instance}
            values["members"] = [who]
        elif api == "OFFSET_COMMIT":
            values |= {"generationIdOrMemberEpoch": self.generation, "topics": COMMITTED}
        values |= more
        return of_version(BODIES[api].request, values, version)

    def hearing(self, response: Response) -> Self:
        """Return the client after the response to its request."""
        client = replace_fields(self, request="")
        error = response.error
        if isinstance(response, LeaveResponse):
            return replace_fields(client.restarted(), phase=ENDED)
        if error == Error.NONE:
            if isinstance(response, JoinResponse):
                leads = response.members and not response.skip_assignment
                return replace_fields(
                    client, phase=JOINED, member_id=response.member_id,
                    generation=response.generation,
                    leads=tuple(sorted([m for m, _, _ in response.members])) if leads else (),
                )  # fmt: skip
            return (
                replace_fields(client, phase=IN) if isinstance(response, SyncResponse) else client
            )
        if error in FATAL:
            return replace_fields(client, phase=ENDED)
        if error == Error.MEMBER_ID_REQUIRED and isinstance(response, JoinResponse):
            return replace_fields(client, phase=OUT, member_id=response.member_id)
        if error == Error.UNKNOWN_MEMBER_ID:
            return replace_fields(client, phase=OUT, member_id="", generation=-1, leads=())
        if error == Error.ILLEGAL_GENERATION:
            return replace_fields(client, phase=OUT, generation=-1, leads=())
        if error == Error.REBALANCE_IN_PROGRESS or self.phase in WAITING:
            return replace_fields(client, phase=OUT, leads=())
        return client
