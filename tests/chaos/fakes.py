"""A broker's log as a broker writes it, and a load process that is only its control channel."""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka_protocol.coordinator_lines import JAVA
from kafka_protocol.errors import Error
from kafka_protocol.request_log import LOGGER, printed
from scenarios import MemberSpec
from scenarios.durations import now_ms
from scenarios.setup import DUPLICATE

TOKEN = "of this test"
COORDINATOR_THREAD = "group-coordinator-event-processor-1"


def until(condition: Callable[[], Any], within_s: float = 60) -> Any:
    """Return what a condition returns, once it holds."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, condition
        time.sleep(0.005)
    return found


def request_text(
    client: str,
    api: str,
    *,
    group: str = "static",
    error: int | None = 0,
    member_id: str = "",
    instance_id: str | None = None,
    removed: Mapping[str, int] | None = None,
    leads: int | None = None,
    connection: str = "127.0.0.1:27161-127.0.0.1:42578-1-4",
    total_ms: float = 0.25,
) -> str:
    """Return the message and logger of a request line, shaped like those of Kafka 4.3.0."""
    response: dict[str, Any] = {"throttleTimeMs": 0}
    if api == "OFFSET_COMMIT":
        codes = [] if error is None else [0, error]
        partitions = [{"partitionIndex": i, "errorCode": code} for i, code in enumerate(codes)]
        response["topics"] = [{"name": "orders", "partitions": partitions}]
    elif error is not None:
        response["errorCode"] = error
    if api == "JOIN_GROUP":
        response["memberId"] = member_id
        response["members"] = [{"memberId": member_id, "groupInstanceId": "x", "metadata": ""}]
        response |= {"generationId": leads or 1, "leader": "" if leads is None else member_id}
    request: dict[str, Any] = {"groupId": group, "memberId": "", "groupInstanceId": instance_id}
    if removed is not None:
        request["members"] = [{"memberId": "", "groupInstanceId": one} for one in removed]
        response["members"] = [
            {"memberId": "", "groupInstanceId": one, "errorCode": code}
            for one, code in removed.items()
        ]
    content = {
        "isForwarded": False,
        "requestHeader": {"correlationId": 2, "clientId": client, "requestApiKeyName": api},
        "request": request,
        "response": response,
        "connection": connection,
        "totalTimeMs": total_ms,
        "clientInformation": {"softwareName": "a (strange) client", "softwareVersion": "1"},
    }
    return f"data-plane-kafka-network-thread-1 DEBUG {printed(content)} ({LOGGER})"


def nanos(at_ms: int) -> int:
    """Return what the monotonic clock of a machine shows that was started in 2001."""
    return (at_ms - 1_000_000_000_000) * 1_000_000


class BrokerLog:
    """Appends lines, at once and whole, as a broker's appender does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self._clients: dict[str, str] = {}
        self._lock = threading.Lock()

    def write(self, text: str, at_ms: int | None = None) -> int:
        """Append a line and return its number."""
        with self._lock, self.path.open("a") as file:
            self.lines += 1
            written_ms = at_ms or now_ms()
            file.write(f"{self.lines} {written_ms} {nanos(written_ms)} {text}\n")
            return self.lines

    def request(self, client: str, api: str, at_ms: int | None = None, **fields: Any) -> int:
        if api == "JOIN_GROUP":
            self._clients[fields.get("member_id", "")] = client
        return self.write(request_text(client, api, **fields), at_ms)

    def leader(
        self, member_id: str, group: str = "static", generation: int = 1, at_ms: int | None = None
    ) -> int:
        return self.request(
            self._clients[member_id],
            "JOIN_GROUP",
            at_ms,
            group=group,
            member_id=member_id,
            leads=generation,
        )

    def empty(self, group: str, generation: int, at_ms: int | None = None) -> int:
        values = {"group": group, "generation": generation, "partition": 1}
        logger = JAVA.template("empty").loggers[0]
        body = JAVA.printed("empty", 1, values)
        return self.write(f"{COORDINATOR_THREAD} INFO {body} ({logger})", at_ms)


class FakeLoad:
    """Serves the control channel, and writes to a broker's log what its members would cause.

    The first member of each group leads it. Members named in `deaf` go on when stopped, those in
    `lost` do not join when started, those in `unassigned` join and get no assignment, those in
    `refused` may not be started, those in `polite` send LeaveGroup when killed or silenced, those
    in `expired` have to join again once they are resumed, and duplicates of those in `unnoticed`
    fence no member. Those in `gone` are gone with their worker.
    """

    def __init__(self, members: Iterable[MemberSpec], log: BrokerLog) -> None:
        self.log = log
        self.orders: list[tuple[str, str, float]] = []
        self.deaf: set[str] = set()
        self.lost: set[str] = set()
        self.unassigned: set[str] = set()
        self.refused: set[str] = set()
        self.polite: set[str] = set()
        self.unnoticed: set[str] = set()
        self.expired: set[str] = set()
        self.gone: set[str] = set()
        self.joins: Counter[str] = Counter()
        self._specs = {member.name: member for member in members}
        self._identity = {member.name: member.instance_id for member in self._specs.values()}
        self._state = dict.fromkeys(self._specs, "starting")
        self._over = threading.Event()
        self._one_at_a_time = threading.Lock()  # what was stopped does not beat once more
        self._beat()
        leaders = {member.group: member.name for member in reversed(self._specs.values())}
        for group, name in leaders.items():
            log.leader(self.member_id(name), group)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._threads = [
            threading.Thread(target=self._accept),
            threading.Thread(target=self._live),
        ]
        for thread in self._threads:
            thread.start()

    def member_id(self, name: str) -> str:
        return f"{name}-id{self.joins[name]}"

    def order(self, do: str, name: str) -> float:
        """Return when an order came in; it must be there, once."""
        [at] = [at for done, whom, at in self.orders if (done, whom) == (do, name)]
        return at

    def ordered(self, do: str) -> list[str]:
        return [name for done, name, _ in self.orders if done == do]

    def is_up(self, name: str) -> bool:
        return self._state[name] == "joined"

    def silence(self, name: str) -> None:
        """Let a member send nothing more, though it is up."""
        with self._one_at_a_time:
            self._state[name] = "silent"

    def die(self) -> None:
        """End as a killed process does: nobody listens, every connection is gone."""
        self._over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()  # no connection comes any more
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _live(self) -> None:
        while not self._over.wait(0.01):
            self._beat()

    def _beat(self) -> None:
        for name in tuple(self._state):
            with self._one_at_a_time:
                self._beat_of(name, self._state[name])

    def _beat_of(self, name: str, state: str) -> None:
        member = name.removesuffix(DUPLICATE)
        who = {"group": self._specs[member].group, "instance_id": self._identity[member]}
        if state == "joined":
            self.log.request(name, "HEARTBEAT", **who)
        elif state == "superseded":
            self._state[name] = "fenced"
            self.log.request(name, "HEARTBEAT", **who, error=Error.FENCED_INSTANCE_ID)
        elif state == "starting" and name not in self.lost:
            self.joins[name] += 1
            unassigned = name in self.unassigned
            self._state[name] = "silent" if unassigned else "joined"
            self.log.request(name, "JOIN_GROUP", **who, member_id=self.member_id(name))
            error = Error.REBALANCE_IN_PROGRESS if unassigned else Error.NONE
            self.log.request(name, "SYNC_GROUP", **who, error=error)
            if name != member and member not in self.unnoticed:
                self._state[member] = "superseded"

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, suppress(OSError):
            if json.loads(lines.readline() or "{}") != {"token": TOKEN}:
                return
            while line := lines.readline():
                request = json.loads(line)
                reply = {"id": request["id"], **self._answer(request)}
                connection.sendall(json.dumps(reply).encode() + b"\n")

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request.get("member", "")
        self.orders.append((request["do"], name, time.monotonic()))
        if request["do"] == "start" and name in self.refused:
            return {"ok": False, "error": f"no user runs member '{name}' now"}
        if name in self.gone:
            return {"ok": False, "error": "worker-1 is gone, and its members", "gone": True}
        with self._one_at_a_time:
            return {"ok": True, "result": self._done(request, name)}

    def _done(self, request: dict[str, Any], name: str) -> Any:
        duplicate = name + DUPLICATE
        match request["do"]:
            case "members":
                return [{"name": name, "state": state} for name, state in self._state.items()]
            case "stop" | "kill" if name not in self.deaf:
                self._state[name] = "stopped"
                if name in self.polite:
                    self.log.request(name, "LEAVE_GROUP", group=self._specs[name].group)
            case "pause" | "stop-polling" | "unsubscribe" if name not in self.deaf:
                self._state[name] = "silent"
                if name in self.polite:
                    self.log.request(name, "LEAVE_GROUP", group=self._specs[name].group)
            case "resume" if self._state[name] == "silent":
                expired = name in self.expired
                self._state[name] = "starting" if expired else "joined"
            case "duplicate":
                self._state[duplicate] = "starting"
                return {"client_id": duplicate, "pid": 1}
            case "end-duplicate" if duplicate not in self.deaf:
                self._state[duplicate] = "stopped"
            case "start" if not self.is_up(name):
                self._identity[name] = request.get("instance_id", self._identity[name])
                self._state[name] = "starting"
        return None
