"""The master's end: it leases every client once, forwards commands, and gathers the histories."""

# Locust's runners have no types.
# mypy: disable-error-code="no-untyped-call"

import itertools
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import AsyncResult

from loadtest import workers as messages
from loadtest.configs import NO_CLIENTS, ClientConfigs, MemberConfig, closing_s
from loadtest.control import Commands, member_of
from loadtest.errors import LoadtestError
from loadtest.history import History, now_ms
from loadtest.lease_table import LeaseTable
from loadtest.members.member import COMMANDS, State, row
from loadtest.timing import COMMAND_ANSWER_S, LOST_S, ROWS_ANSWER_S, WORKERS_EVERY_S
from loadtest.workers.connected import ConnectedWorker

if TYPE_CHECKING:
    from locust.runners import MasterRunner

Json = dict[str, Any]
LOST_LOOKS = round(LOST_S / WORKERS_EVERY_S)
"""How often the master looks before it has lost a worker."""
NOT_MISSING = 1
"""A count of heartbeats with which Locust does not miss a worker."""

LIFE: dict[str, State] = {
    "created": "killed",
    "killed": "killed",
    "fenced": "fenced",
    "closed": "stopped",
}
"""What a client is that is lost with its worker, by the latest of these events of its life."""


class LoadMaster:
    """The workers of this master, and the clients that they have.

    The members of an experiment `stay`: what a lost worker had is leased to no other.
    """

    def __init__(self, runner: "MasterRunner", events: Any, *, stay: bool) -> None:
        self._runner = runner
        self._stay = stay
        self._numbers = itertools.count(1)
        self._workers: dict[str, ConnectedWorker] = {}
        self._asked: dict[int, tuple[str, AsyncResult[Json]]] = {}
        self._ending = False
        self.begin(NO_CLIENTS, History(None))
        listeners: dict[str, Callable[[Any], None]] = {
            messages.LEASE: self._on_lease,
            messages.RELEASE: self._on_release,
            messages.ANSWER: self._on_answer,
            messages.HISTORY: self._on_history,
            messages.HISTORY_END: self._on_history_end,
        }
        for message, listener in listeners.items():
            runner.register_message(message, self._from_our_own(listener))
        for id_ in runner.clients:  # it was faster
            self._on_connect(id_)
        events.worker_connect.add_listener(lambda client_id, **_: self._on_connect(client_id))
        events.heartbeat_sent.add_listener(lambda client_id, **_: self._hear(client_id))
        gevent.spawn(self._watch)

    def when_connected(self, workers: int, do: Callable[[], object]) -> None:
        """Call `do` once so many workers have connected."""
        while sum(one.lost_ms is None for one in self._workers.values()) < workers:
            gevent.sleep(WORKERS_EVERY_S)
        do()

    def begin(self, configs: ClientConfigs, history: History) -> None:
        """Lease these clients from now on, and write what workers send to `history`."""
        self._members, self._history = configs.members, history
        self._table = LeaseTable(configs)
        self._lives: dict[str, str] = {}
        """The latest of the events in LIFE that the history has of each client."""
        history.watchers.append(self._see)

    def _see(self, line: Json) -> None:
        if line["event"] in LIFE:
            self._lives[line["member"]] = line["event"]

    def members(self) -> list[Json]:
        """Return a row for each member, of all workers."""
        there = [id_ for id_, worker in self._workers.items() if worker.lost_ms is None]
        asked = [gevent.spawn(self._rows_of, id_) for id_ in there]
        gevent.joinall(asked)
        rows = {id_: of.value for id_, of in zip(there, asked, strict=True)}
        return [self._row(member, rows) for member in self._members]

    def commands(self) -> Commands:
        """Return the control commands for members, which their workers carry out."""
        return {"members": lambda _: self.members(), **dict.fromkeys(COMMANDS, self.forward)}

    def forward(self, request: Json) -> Any:
        """Let the worker that has a member carry out a command; return its result.

        Raises LoadtestError if it refuses or does not answer, and WorkerGoneError if it is gone.
        """
        name = member_of(request)
        if name not in self._table:
            raise LoadtestError(f"no member is called {name!r}; list the members with `members`")
        holder = self._table.holder(name)
        if holder is None:
            raise LoadtestError(f"no user runs {name!r} now; start more users")
        return self._ask(holder, request, COMMAND_ANSWER_S)

    def watch_for_losses(self) -> None:
        """Take a worker that ends from now on for lost."""
        self._ending = False

    def stop_workers(self) -> None:
        """Let all workers close their clients; return when their histories are here.

        Locust stops the users afterwards, and does not always wait for that.
        """
        self._ending = True
        self._runner.send_message(messages.END)
        with gevent.Timeout(closing_s(len(self._members)), False):
            while any(one.goes_on for one in self._workers.values()):
                gevent.sleep(WORKERS_EVERY_S)

    def missing(self) -> list[str]:
        """Return what is missing of the load, in words, once its workers have stopped."""
        return [
            problem
            for id_, worker in self._workers.items()
            for problem in worker.problems(self._table.held_by(id_))
        ]

    def close(self) -> None:
        """Write the end of what lost workers had; other clients are closed by their workers."""
        for id_, worker in self._workers.items():
            if worker.lost_ms is not None:
                self._kill_members_of(id_, worker)

    def _kill_members_of(self, id_: str, worker: ConnectedWorker) -> None:
        """Write that those which ran were killed when their worker was last heard of."""
        for member in self._table.held_by(id_):
            if not isinstance(member, MemberConfig):
                continue
            for name in (member.name, member.duplicate_name):
                if self._lives.get(name) == "created":
                    self._history.write(
                        "killed",
                        at_ms=worker.heard_ms,
                        member=name,
                        group=member.group,
                        kind=member.kind,
                        partitions=[],
                        worker=worker.name,
                    )

    def _row(self, member: MemberConfig, rows: dict[str, dict[str, Json] | None]) -> Json:
        holder = self._table.holder(member.name)
        if holder is None:
            return row(member, "stopped")
        if self._workers[holder].lost_ms is not None:
            return row(member, LIFE.get(self._lives.get(member.name, ""), "stopped"))
        of_worker = rows.get(holder)
        if of_worker is None:
            return row(member, "unknown")
        return of_worker.get(member.name) or row(member, "stopped")

    def _rows_of(self, id_: str) -> dict[str, Json] | None:
        """Return the rows of a worker's members, by name; None if it does not answer."""
        try:
            return {row["name"]: row for row in self._ask(id_, {"do": "members"}, ROWS_ANSWER_S)}
        except LoadtestError:
            return None

    def _ask(self, id_: str, request: Json, within_s: float) -> Any:
        worker = self._workers[id_]
        if worker.lost_ms is not None:
            raise worker.gone()
        number, answer = next(self._numbers), AsyncResult()
        self._asked[number] = id_, answer
        self._runner.send_message(messages.COMMAND, {"number": number, "request": request}, id_)
        try:
            reply: Json = answer.get(timeout=within_s)
        except gevent.Timeout:
            raise LoadtestError(
                f"{worker.name} did not answer {request['do']!r} within {within_s:g} s; see its log"
            ) from None
        finally:
            del self._asked[number]
        if not reply["ok"]:
            raise LoadtestError(reply["error"])
        return reply["result"]

    # what workers send

    def _on_connect(self, id_: str) -> None:
        if id_ not in self._workers:
            host = id_.rpartition("_")[0]
            name = f"worker-{self._runner.get_worker_index(id_)} ({host})"
            self._workers[id_] = ConnectedWorker(name)

    def _from_our_own(self, listener: Callable[[Any], None]) -> Callable[..., None]:
        """Let a listener hear workers that connected here; dismiss those of an earlier master.

        They outlive it by a minute, and their sockets connect to who listens at its address.
        """

        def hear(msg: Any, **_: object) -> None:
            if msg.node_id in self._workers:
                listener(msg)
            else:
                self._dismiss(msg.node_id)

        return hear

    def _hear(self, id_: str) -> ConnectedWorker:
        worker = self._workers[id_]
        worker.heard_ms, worker.looks = now_ms(), 0
        if worker.lost_ms is not None:
            self._dismiss(id_)
        return worker

    def _on_lease(self, msg: Any) -> None:
        worker = self._hear(msg.node_id)
        if worker.lost_ms is not None:
            return
        worker.took = True
        client = self._table.lease(msg.data["kind"], msg.node_id)
        if client is not None:
            self._history.write("leased", member=client.name, worker=worker.name)
        fields = None if client is None else asdict(client)
        answer: Json = {"number": msg.data["number"], "client": fields}
        self._runner.send_message(messages.LEASED, answer, msg.node_id)

    def _on_release(self, msg: Any) -> None:
        name = msg.data["name"]
        if self._workers[msg.node_id].lost_ms is not None:
            return  # what it had is settled
        if self._table.holder(name) == msg.node_id:  # else of a load before
            self._table.release(name, msg.node_id)

    def _on_answer(self, msg: Any) -> None:
        if (asked := self._asked.get(msg.data["number"])) is not None:
            asked[1].set(msg.data["reply"])

    def _on_history(self, msg: Any) -> None:
        worker, data = self._hear(msg.node_id), msg.data
        self._history.add(worker.take(data["first"], data["lines"], data["sent_ms"]))

    def _on_history_end(self, msg: Any) -> None:
        self._hear(msg.node_id).written = msg.data["lines"]

    # workers that come and go

    def _watch(self) -> None:
        while True:
            gevent.sleep(WORKERS_EVERY_S)
            for id_, worker in list(self._workers.items()):
                node = self._runner.clients.get(id_)
                worker.looks += 1
                if worker.lost_ms is not None:
                    self._forget(id_)
                elif node is None or (self._stay and worker.looks > LOST_LOOKS):
                    self._lose(id_, worker)
                elif self._stay:
                    # Locust would end the test with the last worker that it misses, and start all
                    # users again a minute after any
                    node.heartbeat = max(node.heartbeat, NOT_MISSING)

    def _lose(self, id_: str, worker: ConnectedWorker) -> None:
        worker.left = worker.written is not None
        if self._ending and (worker.left or not worker.took):
            return
        worker.lost_ms = now_ms()
        had = [client.name for client in self._table.held_by(id_)]
        for of, answer in self._asked.values():
            if of == id_ and not answer.ready():
                answer.set_exception(worker.gone())
        if not self._stay:
            self._kill_members_of(id_, worker)
            for name in had:
                self._table.release(name, id_)
        if not worker.left:
            self._dismiss(id_)
        self._forget(id_)
        self._history.write(
            "worker_lost", worker=worker.name, members=had, last_heard_ms=worker.heard_ms
        )

    def _dismiss(self, id_: str) -> None:
        """Let a worker end that is lost or unknown: others may have its members."""
        self._runner.send_message(messages.DISMISS, client_id=id_)

    def _forget(self, id_: str) -> None:
        """Let Locust forget a lost worker: its stop waits for the users of those that it knows."""
        self._runner.clients.pop(id_, None)
