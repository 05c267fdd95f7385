"""All clients of this process. Locust users lease them; control commands act on them."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import gevent
from gevent.threadpool import ThreadPool

from loadtest.configs import ClientConfig, ClientConfigs, ClientKind, MemberConfig
from loadtest.control import Commands, member_of
from loadtest.errors import LoadtestError
from loadtest.history import History, Report, now_ms
from loadtest.members.librdkafka import LibrdkafkaClient
from loadtest.members.member import COMMANDS, Client, Member
from loadtest.members.program import ProgramClient
from loadtest.members.wire import WireClient
from loadtest.producer import PacedProducer
from loadtest.timing import QUIET_MS

if TYPE_CHECKING:
    from loadtest.lease_table import LeaseTable
    from loadtest.workers.worker import LoadWorker

MOST_THREADS = 256
POLL = "poll"
"""The name of polls in Locust's statistics."""


class ClientPool:
    """The clients of `configs`, and each other one that is leased here first.

    `leases` is the table of this process, or asks that of the master. `environment` is Locust's.
    """

    def __init__(
        self,
        leases: "LeaseTable | LoadWorker",
        configs: ClientConfigs,
        bootstrap: str,
        history: History,
        environment: Any,
    ) -> None:
        self._leases = leases
        self._bootstrap = bootstrap
        self._history = history
        self._run_blocking = BlockingCalls(len(configs) or MOST_THREADS)
        self._report_as = partial(locust_report, environment, {})
        self._is_closed = False
        self._members: dict[str, Member] = {}
        self._producers: dict[str, PacedProducer] = {}
        for config in configs.by_name().values():
            self._client(config)

    def lease(self, kind: ClientKind) -> Member | PacedProducer | None:
        """Return a client for a user; None if there is none now."""
        config = None if self._is_closed else self._leases.lease(kind)
        if config is None:
            return None
        if self._is_closed:  # while a worker waited for its master
            self._leases.release(config.name)
            return None
        return self._client(config)

    def release(self, name: str) -> None:
        """Take a client of a user back."""
        self._leases.release(name)

    def members(self) -> list[dict[str, Any]]:
        """Return one row for each member, in the order of the configuration."""
        return [member.row() for member in self._members.values()]

    def close(self) -> None:
        """Close every open client, and wait for those that another greenlet is closing.

        None is leased any more.
        """
        self._is_closed = True
        clients: tuple[Member | PacedProducer, ...] = (
            *self._members.values(),
            *self._producers.values(),
        )
        gevent.joinall([gevent.spawn(client.close) for client in clients], raise_error=True)

    def commands(self) -> Commands:
        """Return the control commands for members; one returns once it is carried out."""
        return {"members": lambda _: self.members(), **dict.fromkeys(COMMANDS, self._carry_out)}

    def _carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        name = member_of(request)
        if name not in self._members:
            raise LoadtestError(f"no member is called {name!r}; list the members with `members`")
        return self._members[name].carry_out(request)

    def _client(self, config: ClientConfig) -> Member | PacedProducer:
        if isinstance(config, MemberConfig):
            if config.name not in self._members:
                member = Member(config, self._start, self._history, self._report_as)
                self._members[config.name] = member
            return self._members[config.name]
        if config.name not in self._producers:
            report = self._report_as("PRODUCER")
            self._producers[config.name] = PacedProducer(
                config, self._bootstrap, self._history, report, self._run_blocking
            )
        return self._producers[config.name]

    def _start(self, member: Member) -> Client:
        match member.config.client:
            case "librdkafka":
                return LibrdkafkaClient(member, self._bootstrap, self._run_blocking)
            case "wire":
                return WireClient(member, self._bootstrap)
            case _:
                return ProgramClient(member, self._bootstrap)


class BlockingCalls:
    """Runs blocking calls of Kafka's client in threads, so that other greenlets go on meanwhile.

    It has one thread a client, since at the end all clients close at once.
    """

    def __init__(self, clients: int) -> None:
        self._pool = ThreadPool(min(max(clients, 1), MOST_THREADS))

    def __call__(self, call: Callable[[], Any]) -> Any:
        """Wait for the call and return its value, or raise what it raised.

        A greenlet that is killed meanwhile still waits for the thread, which uses the client, and
        ends afterwards.
        """
        result = self._pool.spawn(_outcome, call)
        killed: gevent.GreenletExit | None = None
        while not result.ready():
            try:
                result.wait()
            except gevent.GreenletExit as kill:
                killed = kill
        if killed is not None:
            raise killed
        value, error = result.get()
        if error is not None:
            raise error
        return value


def _outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    # gevent prints a traceback for every exception in a thread, so the thread raises none.
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001
        return None, error


class ReportedError(Exception):
    """The exception of a failed event; Locust groups failures by its text."""


def locust_report(
    environment: Any, reported: dict[tuple[str, str | None], float], request_type: str
) -> Report:
    """Return what counts events in Locust's statistics, with this `request_type`.

    Polls have an entry of their own, and no part in Locust's totals and charts: most take no time.
    Hundreds of clients report errors for as long as they reach no broker, so an error of a kind is
    counted once in `QUIET_MS`; `reported` has when, for all clients of a load.
    """

    def report(name: str, took_ms: float | None, size: int = 0, error: str | None = None) -> None:
        if name == POLL:
            environment.runner.stats.get(name, request_type).log(took_ms, size)
            return
        if name == "error":
            if now_ms() - reported.get((request_type, error), -inf) < QUIET_MS:
                return
            reported[request_type, error] = now_ms()
        environment.events.request.fire(
            request_type=request_type,
            name=name,
            response_time=took_ms,
            response_length=size,
            exception=ReportedError(error) if error else None,
            context={},
        )

    return report
