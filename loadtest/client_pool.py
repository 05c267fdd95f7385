"""All clients of this process. Locust users lease them; control commands act on them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import gevent

from loadtest.blocking_calls import MOST_THREADS, BlockingCalls
from loadtest.client_configs import ClientConfig, ClientConfigs, ClientKind, MemberConfig
from loadtest.command_member import CommandMember
from loadtest.control_protocol import Command, Commands, instance_id_of, member_of
from loadtest.duplicate_member import DuplicateMember
from loadtest.duplicate_process import DuplicateProcess
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.lease_table import LeaseTable
from loadtest.librdkafka_process import LibrdkafkaProcess
from loadtest.locust_statistics import StatisticRecorder, locust_recorder
from loadtest.member import Member
from loadtest.member_handle import ClientHandle, MemberHandle
from loadtest.producer import PacedProducer
from loadtest.wire_client_member import WireClientMember


class Leases(Protocol):
    """Where users get clients from: a table of this process, or that of the master."""

    def lease(self, kind: ClientKind) -> ClientConfig | None:
        """Return a client that no other user has; None if there is none now."""

    def release(self, name: str) -> None:
        """Return it."""


class OwnLeases:
    """The leases of a process that runs all clients."""

    def __init__(self, configs: ClientConfigs) -> None:
        self._table = LeaseTable.of(configs)
        self._configs = configs.by_name()

    def lease(self, kind: ClientKind) -> ClientConfig | None:
        """Return the first client of a kind that no user has."""
        name = self._table.lease(kind)
        return None if name is None else self._configs[name]

    def release(self, name: str) -> None:
        """Take a client back."""
        self._table.release(name)


class ClientPool:
    """A handle for each client of `configs`, and for each other one that is leased here first.

    `events` are those of Locust's environment.
    """

    def __init__(
        self,
        leases: Leases,
        configs: ClientConfigs,
        bootstrap: str,
        history: History,
        events: Any,
    ) -> None:
        self._leases = leases
        self._bootstrap = bootstrap
        self._history = history
        self._run_blocking = BlockingCalls(len(configs) or MOST_THREADS)
        self._recorder_for = partial(locust_recorder, events)
        self._is_closed = False
        self._members: dict[str, MemberHandle] = {}
        self._producers: dict[str, ClientHandle] = {}
        for config in configs.by_name().values():
            self._handle_of(config)

    def lease(self, kind: ClientKind) -> ClientHandle | None:
        """Return a client for a user; None if there is none now."""
        config = None if self._is_closed else self._leases.lease(kind)
        if config is None:
            return None
        if self._is_closed:  # while a worker waited for its master
            self._leases.release(config.name)
            return None
        return self._handle_of(config)

    def release(self, handle: ClientHandle) -> None:
        """Take a client of a user back."""
        self._leases.release(handle.name)

    def members(self) -> list[dict[str, Any]]:
        """Return one row for each member, in the order of the configuration."""
        return [handle.row() for handle in self._members.values()]

    def handle(self, name: str) -> MemberHandle:
        """Return the handle of a member. Raises LoadtestError if there is no such member."""
        try:
            return self._members[name]
        except KeyError:
            raise LoadtestError(
                f"no member is called {name!r}; list the members with `members`"
            ) from None

    def close(self) -> None:
        """Close every open client, and wait for those that another greenlet is closing.

        None is leased any more.
        """
        self._is_closed = True
        handles = (*self._members.values(), *self._producers.values())
        gevent.joinall([gevent.spawn(handle.close) for handle in handles], raise_error=True)

    def _handle_of(self, config: ClientConfig) -> ClientHandle:
        if isinstance(config, MemberConfig):
            if config.name not in self._members:
                self._members[config.name] = _handle(
                    config, self._bootstrap, self._history, self._recorder_for, self._run_blocking
                )
            return self._members[config.name]
        if config.name not in self._producers:
            report, run_blocking = self._recorder_for("PRODUCER"), self._run_blocking
            producer = PacedProducer(config, self._bootstrap, self._history, report, run_blocking)
            self._producers[config.name] = ClientHandle(config.name, producer)
        return self._producers[config.name]


def _handle(
    config: MemberConfig,
    bootstrap: str,
    history: History,
    recorder_for: Callable[[str], StatisticRecorder],
    run_blocking: BlockingCalls,
) -> MemberHandle:
    """Return the handle of a member; a duplicate is of the same client."""

    def wire(config: MemberConfig) -> WireClientMember:
        return WireClientMember(config, bootstrap, history, recorder_for)

    def command(config: MemberConfig) -> CommandMember:
        return CommandMember(config, bootstrap, history, recorder_for)

    match config.client:
        case "wire":
            return MemberHandle(wire(config), DuplicateMember(wire))
        case "librdkafka":
            member = Member(config, bootstrap, history, recorder_for, run_blocking)
            return MemberHandle(member, DuplicateProcess(bootstrap, history))
        case "librdkafka-process":
            process = LibrdkafkaProcess(config, bootstrap, history, recorder_for)
            return MemberHandle(process, DuplicateProcess(bootstrap, history))
        case _:
            return MemberHandle(command(config), DuplicateMember(command))


def commands(client_pool: ClientPool) -> Commands:
    """Return the control commands for members, by name; a command returns once it is carried out.

    The result is the member's row; for `duplicate` it is the new process's `client_id` and `pid`.
    """

    def of_one(do: Callable[[MemberHandle, dict[str, Any]], Any]) -> Command:
        return lambda request: do(client_pool.handle(member_of(request)), request)

    return {
        "members": lambda _: client_pool.members(),
        **{name: of_one(do) for name, do in OF_ONE.items()},
    }


def _start(handle: MemberHandle, request: dict[str, Any]) -> dict[str, Any]:
    if "instance_id" in request:
        return handle.start_as(instance_id_of(request))
    return handle.start()


OF_ONE: Mapping[str, Callable[[MemberHandle, dict[str, Any]], dict[str, Any]]] = {
    "start": _start,
    "stop": lambda handle, _: handle.stop(),
    "kill": lambda handle, _: handle.kill(),
    "pause": lambda handle, _: handle.pause(),
    "stop-polling": lambda handle, _: handle.stop_polling(),
    "resume": lambda handle, _: handle.resume(),
    "duplicate": lambda handle, _: handle.duplicate(),
    "end-duplicate": lambda handle, _: handle.end_duplicate(),
}
"""The control commands for one member."""
