"""All clients of this process. Locust users lease them; control commands act on them."""

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from loadtest.blocking_calls import BlockingCalls
from loadtest.client_configs import ClientConfigs, Kind, MemberConfig
from loadtest.command_member import CommandMember
from loadtest.control_protocol import Commands, instance_id_of, member_of
from loadtest.duplicate_member import DuplicateMember
from loadtest.duplicate_process import DuplicateProcess
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.lease_pool import LeasePool
from loadtest.librdkafka_process import LibrdkafkaProcess
from loadtest.locust_statistics import StatisticRecorder, locust_recorder
from loadtest.member import Member
from loadtest.member_handle import ClientHandle, MemberHandle
from loadtest.producer import PacedProducer
from loadtest.wire_client_member import WireClientMember


class ClientPool:
    """One handle for each configured client. `events` are those of Locust's environment."""

    def __init__(
        self, configs: ClientConfigs, bootstrap: str, history: History, events: Any
    ) -> None:
        run_blocking = BlockingCalls(len(configs))
        recorder_for = partial(locust_recorder, events)
        self._members = {
            config.name: _handle(config, bootstrap, history, recorder_for, run_blocking)
            for config in configs.members
        }
        self._producers = {
            config.name: ClientHandle(
                config.name,
                PacedProducer(config, bootstrap, history, recorder_for("PRODUCER"), run_blocking),
            )
            for config in configs.producers
        }
        self.members_of: dict[Kind, LeasePool[ClientHandle]] = {
            kind: LeasePool(self._members[config.name] for config in configs.of_kind(kind))
            for kind in get_args(Kind)
        }
        self.producers = LeasePool(self._producers.values())

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
        """Close every open client, and wait for those that another greenlet is closing."""
        for handle in (*self._members.values(), *self._producers.values()):
            handle.close()


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
    return {
        "members": lambda _: client_pool.members(),
        "start": lambda request: _start(client_pool, request),
        "stop": lambda request: client_pool.handle(member_of(request)).stop(),
        "kill": lambda request: client_pool.handle(member_of(request)).kill(),
        "pause": lambda request: client_pool.handle(member_of(request)).pause(),
        "stop-polling": lambda request: client_pool.handle(member_of(request)).stop_polling(),
        "resume": lambda request: client_pool.handle(member_of(request)).resume(),
        "duplicate": lambda request: client_pool.handle(member_of(request)).duplicate(),
        "end-duplicate": lambda request: client_pool.handle(member_of(request)).end_duplicate(),
    }


def _start(client_pool: ClientPool, request: dict[str, Any]) -> dict[str, Any]:
    handle = client_pool.handle(member_of(request))
    if "instance_id" in request:
        return handle.start_as(instance_id_of(request))
    return handle.start()
