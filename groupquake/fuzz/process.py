"""One client process of a fuzzed group: its identity and the state from its responses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from kafka_protocol.errors import Error, codes_in
from loadtest.wire import Exchange


class Phase(Enum):
    """The next request of a well-behaved client: JoinGroup, SyncGroup, or Heartbeat."""

    OUT = auto()
    JOINED = auto()
    IN = auto()


@dataclass
class Process:
    """A client process. `member_id` and `generation` are those of the latest responses."""

    client_id: str
    instance_id: str | None
    versions: Mapping[str, int]
    session_ms: int
    rebalance_ms: int
    protocols: tuple[tuple[str, str], ...]
    incarnation: int = 1
    gone: bool = False
    phase: Phase = Phase.OUT
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    led: tuple[str, ...] = ()
    """The members that it assigns to, as the leader; nobody if it is not the leader."""
    joined: bool = False
    stale: list[str] = field(default_factory=list)
    """Its earlier member ids."""
    waiting: dict[int, str] = field(default_factory=dict)
    """APIs of the requests without a response, by number."""
    alive_ms: float = 0.0
    joined_ms: float = 0.0
    pending_ms: float = 0.0

    @property
    def connection(self) -> str:
        """The name of its connection; a restarted process has a new one."""
        return f"{self.client_id}.{self.incarnation}"

    @property
    def busy(self) -> bool:
        """Whether it waits for a JoinGroup or SyncGroup response."""
        return any(api in ("JOIN_GROUP", "SYNC_GROUP") for api in self.waiting.values())

    def restart(self) -> None:
        """Restart: only the instance id stays."""
        self.forget()
        self.incarnation += 1
        self.waiting.clear()

    def forget(self) -> None:
        """Forget the member id."""
        if self.member_id:
            self.stale.append(self.member_id)
        self.member_id, self.generation, self.protocol = "", -1, None
        self.phase, self.led, self.joined = Phase.OUT, (), False

    def apply(self, number: int, exchange: Exchange) -> None:
        """Apply the response to a request that it sent with its own identity."""
        if self.waiting.pop(number, None) is None or exchange.response is None:
            return
        error = next((code for code in codes_in(exchange.response) if code), int(Error.NONE))
        if error == Error.NONE:
            self.alive_ms = exchange.answered_ms
        match exchange.api:
            case "JOIN_GROUP":
                self._apply_join(error, exchange.response, exchange.answered_ms)
            case "SYNC_GROUP" if error == Error.NONE:
                self.phase = Phase.IN
            case "LEAVE_GROUP" if error == Error.NONE:
                self.forget()
            case _:
                self._apply_error(error)

    def _apply_join(self, error: int, answer: Mapping[str, Any], at_ms: float) -> None:
        if error == Error.NONE:
            self.member_id, self.generation = answer["memberId"], answer["generationId"]
            self.protocol = answer["protocolName"]
            leads = answer["leader"] == answer["memberId"] and not answer.get("skipAssignment")
            self.led = tuple(m["memberId"] for m in answer["members"]) if leads else ()
            self.phase, self.joined, self.joined_ms = Phase.JOINED, True, at_ms
        elif error == Error.MEMBER_ID_REQUIRED:
            self.member_id, self.pending_ms = answer["memberId"], at_ms
        else:
            self._apply_error(error)

    def _apply_error(self, error: int) -> None:
        if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            self.forget()
        elif error == Error.GROUP_MAX_SIZE_REACHED:
            self.gone = True
        elif error == Error.INCONSISTENT_GROUP_PROTOCOL:
            data = self.protocols[0][1]
            self.protocols = (("range", data), ("rr", data))
        elif error != Error.NONE:
            self.phase = Phase.OUT
