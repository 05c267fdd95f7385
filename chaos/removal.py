"""Removes static members from their group, as an operator does: one LeaveGroup by instance ids.

Beside it, what else an operator asks of a group: configs, by IncrementalAlterConfigs (KIP-848).

KIP-345 lets a client with READ access to a group remove members by `group.instance.id` alone
(LeaveGroup v3, Kafka 2.4), for fast scale-down and host replacement: the group rebalances at once
instead of after a session timeout. The response has an error code for each member.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, MemberToRemove
from kafka.errors import (
    BrokerResponseError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    UnknownBrokerIdError,
    UnknownError,
    for_code,
)

from chaos.errors import ChaosError, UnreachableError
from chaos.kafka_client import admin_client
from chaos.timing import REMOTE_POLL_S, REMOVAL_S
from kafka_protocol.errors import NOT_SERVED_YET, Error

CLIENT_ID = "groupquake"
REASON = "removed by an operator"

Answer = TypeVar("Answer")


class GroupError(ChaosError):
    """The brokers refused to describe the group; `code` is Kafka's error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Removal:
    """The response of the coordinator: Kafka's error codes, where 0 is none.

    `members` are pairs of an instance id and its error code, in the order of the request. They are
    empty if `error`, which is about the whole request, is set.
    """

    error: int
    members: tuple[tuple[str, int], ...]


def remove_members(
    bootstrap: str,
    group: str,
    instance_ids: Sequence[str],
    *,
    client_id: str = CLIENT_ID,
    config: Mapping[str, str] | None = None,
    timeout_s: float = REMOVAL_S,
) -> Removal:
    """Remove static members with one LeaveGroup request to the group's coordinator.

    The request is sent again only if the broker did nothing, since it was not the coordinator.
    `config` holds `scenarios.client_properties`. Raises UnreachableError, PropertiesError.
    """
    requested = tuple(dict.fromkeys(instance_ids))
    members = [MemberToRemove(group_instance_id=one, reason=REASON) for one in requested]
    try:
        answers: dict[str, type[KafkaError]] = _ask(
            lambda admin: admin.remove_group_members(group, members),
            *(bootstrap, config, timeout_s, client_id),
        )
    except BrokerResponseError as error:
        return Removal(error.errno, ())
    # a broker that names a member by its member id alone has not answered about the instance
    return Removal(
        Error.NONE, tuple((one, answers.get(one, UnknownError).errno) for one in requested)
    )


def configure_group(
    bootstrap: str,
    group: str,
    configs: Mapping[str, str],
    *,
    client_id: str = CLIENT_ID,
    config: Mapping[str, str] | None = None,
) -> int:
    """Set configs of a group, "" for the default; return the error code. Raises ChaosError."""
    changes = {name: ("SET" if value else "DELETE", value) for name, value in configs.items()}
    resource = ConfigResource(ConfigResourceType.GROUP, group, changes)

    def alter(admin: KafkaAdminClient) -> int:
        answers = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
        code, _ = _error_of({"error": answers["group"][group]})
        if code in NOT_SERVED_YET:
            raise for_code(code)
        return code

    with _group_errors(group):
        return _ask(alter, bootstrap, config, client_id=client_id)


def static_members(
    bootstrap: str,
    group: str,
    config: Mapping[str, str] | None = None,
    timeout_s: float = REMOVAL_S,
) -> tuple[str, ...]:
    """Return the instance ids of a classic group's static members, sorted.

    Raises GroupError (GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, …),
    UnreachableError, PropertiesError.
    """
    members = _members(bootstrap, group, config, timeout_s)
    return tuple(sorted(instance for _, instance in members if instance))


def remove_everybody(bootstrap: str, group: str, config: Mapping[str, str]) -> None:
    """Remove all members of a classic group, static or dynamic, with one LeaveGroup request.

    A dynamic member that was killed stays until its session ends, and nobody can delete the group
    before. Raises as `static_members`; a member that has left meanwhile is none of note.
    """
    members = [
        MemberToRemove(group_instance_id=instance, reason=REASON)
        if instance
        else MemberToRemove(member_id=member, reason=REASON)
        for member, instance in _members(bootstrap, group, config)
    ]
    if members:
        with _group_errors(group):
            _ask(lambda admin: admin.remove_group_members(group, members), bootstrap, config)


def _members(
    bootstrap: str, group: str, config: Mapping[str, str] | None, timeout_s: float = REMOVAL_S
) -> list[tuple[str, str | None]]:
    """Return the members of a classic group: member id, and instance id of static ones."""

    def describe(admin: KafkaAdminClient) -> dict[str, Any]:
        description: dict[str, Any] = admin.describe_groups([group])[group]
        if (code := _error_of(description)[0]) in NOT_SERVED_YET:
            raise for_code(code)
        return description

    with _group_errors(group):
        description = _ask(describe, bootstrap, config, timeout_s)
    code, message = _error_of(description)
    if code == Error.GROUP_ID_NOT_FOUND or description["group_state"] == "Dead":
        # up to 4.0 an unknown group is described as dead, without an error (KIP-1043)
        raise GroupError(Error.GROUP_ID_NOT_FOUND, message or f"there is no classic group {group}")
    if code == Error.NONE and any("group_instance_id" not in it for it in description["members"]):
        code = Error.UNSUPPORTED_VERSION  # DescribeGroups has it from v4 on, Kafka 2.4 (KIP-345)
    if code != Error.NONE:
        raise GroupError(code, f"group {group}: {error_name(code)}")
    return [(one["member_id"], one["group_instance_id"]) for one in description["members"]]


@contextmanager
def _group_errors(group: str) -> Iterator[None]:
    """Raise what the coordinator answers to a request as GroupError."""
    try:
        yield
    except BrokerResponseError as error:
        raise GroupError(error.errno, f"group {group}: {error_name(error.errno)}") from error


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, such as UNKNOWN_MEMBER_ID."""
    kind = for_code(code)
    known = kind.__name__ != "UnrecognizedBrokerError"
    return str(getattr(kind, "message", kind.__name__)) if known else f"error {code}"


_ERROR = re.compile(r"\[Error (-?\d+)\] \w+(?:: (.*))?", re.DOTALL)


def _error_of(description: Mapping[str, Any]) -> tuple[int, str]:
    """Return code and message, which the library joins in one text."""
    found = _ERROR.fullmatch(description["error"] or "")
    return (int(found[1]), found[2] or "") if found else (Error.NONE, "")


def _ask(
    ask: Callable[[KafkaAdminClient], Answer],
    bootstrap: str,
    config: Mapping[str, str] | None,
    timeout_s: float = REMOVAL_S,
    client_id: str = CLIENT_ID,
) -> Answer:
    """Ask until there is a final response, or time is up."""
    deadline = time.monotonic() + timeout_s
    while True:
        left_s = deadline - time.monotonic()
        try:
            # a new client for each attempt, since a client caches the coordinator
            with admin_client(bootstrap, config or {}, left_s, client_id=client_id) as admin:
                return ask(admin)
        except (KafkaError, OSError) as error:
            if not _did_nothing(error) or time.monotonic() + REMOTE_POLL_S > deadline:
                # some time-outs of the library look like broker responses
                gave_up = isinstance(error, RequestTimedOutError | KafkaTimeoutError)
                if isinstance(error, BrokerResponseError) and not gave_up:
                    raise
                raise UnreachableError(f"no answer from {bootstrap}: {error}") from error
            time.sleep(REMOTE_POLL_S)


def _did_nothing(error: BaseException) -> bool:
    """Return whether it is safe to ask again: nothing was sent, or the broker did nothing."""
    if isinstance(error, BrokerResponseError):
        return error.errno in NOT_SERVED_YET
    return isinstance(error, UnknownBrokerIdError | NodeNotReadyError)
