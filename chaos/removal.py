"""Takes static members out of their group, as an operator would: one LeaveGroup by instance ids.

KIP-345 lets anyone who may read a group remove members by `group.instance.id` alone (LeaveGroup v3,
Kafka 2.4), for fast scale-down and host replacement: the group rebalances at once instead of after
a session timeout. The broker answers for every member by itself.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka.admin import KafkaAdminClient, MemberToRemove
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

from chaos.client_properties import for_kafka_python
from chaos.errors import ChaosError, UnreachableError
from kafka_protocol.errors import NOT_SERVED_YET, Error

CLIENT_ID = "groupquake"
REASON = "removed by an operator"
TIMEOUT_S = 30.0
_PAUSE_S = 0.2

Answer = TypeVar("Answer")


class GroupError(ChaosError):
    """The brokers answered that the group cannot be looked at; `code` is Kafka's error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Removal:
    """What the coordinator answered: Kafka's error codes, where 0 is none.

    `error` is about the whole request, and then there are no `members`: pairs of an instance id and
    the error about it, in the order asked for.
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
    timeout_s: float = TIMEOUT_S,
) -> Removal:
    """Ask the group's coordinator to remove static members, all in one LeaveGroup request.

    It is sent again only if the broker said that it did nothing, for want of a coordinator.
    `config` holds `chaos.client_properties`. Raises UnreachableError, PropertiesError.
    """
    asked = tuple(dict.fromkeys(instance_ids))
    members = [MemberToRemove(group_instance_id=one, reason=REASON) for one in asked]

    def remove(admin: KafkaAdminClient) -> dict[str, type[KafkaError]]:
        answers: dict[str, type[KafkaError]] = admin.remove_group_members(group, members)
        return answers

    try:
        answers = _ask(remove, bootstrap, client_id, config, timeout_s)
    except BrokerResponseError as error:
        return Removal(error.errno, ())
    # a broker that names a member by its member id alone has not answered about the instance
    return Removal(Error.NONE, tuple((one, answers.get(one, UnknownError).errno) for one in asked))


def static_members(
    bootstrap: str,
    group: str,
    config: Mapping[str, str] | None = None,
    *,
    client_id: str = CLIENT_ID,
    timeout_s: float = TIMEOUT_S,
) -> tuple[str, ...]:
    """Return the instance ids of a classic group's static members, sorted.

    Raises GroupError (GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, …),
    UnreachableError, PropertiesError.
    """

    def describe(admin: KafkaAdminClient) -> dict[str, Any]:
        description: dict[str, Any] = admin.describe_groups([group])[group]
        if (code := _error_of(description)[0]) in NOT_SERVED_YET:
            raise for_code(code)
        return description

    try:
        description = _ask(describe, bootstrap, client_id, config, timeout_s)
    except BrokerResponseError as error:
        raise GroupError(error.errno, f"group {group}: {error_name(error.errno)}") from error
    code, message = _error_of(description)
    if code == Error.GROUP_ID_NOT_FOUND or description["group_state"] == "Dead":
        # up to 4.0 an unknown group is described as dead, without an error (KIP-1043)
        raise GroupError(Error.GROUP_ID_NOT_FOUND, message or f"there is no classic group {group}")
    if code != Error.NONE:
        raise GroupError(code, f"group {group}: {error_name(code)}")
    try:
        ids = [member["group_instance_id"] for member in description["members"]]
    except KeyError:  # DescribeGroups tells them from v4 on, Kafka 2.4 (KIP-345)
        raise GroupError(
            Error.UNSUPPORTED_VERSION, f"group {group}: {error_name(Error.UNSUPPORTED_VERSION)}"
        ) from None
    return tuple(sorted(filter(None, ids)))


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, such as UNKNOWN_MEMBER_ID."""
    kind = for_code(code)
    known = kind.__name__ != "UnrecognizedBrokerError"
    return str(getattr(kind, "message", kind.__name__)) if known else f"error {code}"


_ERROR = re.compile(r"\[Error (-?\d+)\] \w+(?:: (.*))?", re.DOTALL)


def _error_of(description: Mapping[str, Any]) -> tuple[int, str]:
    """Return code and message; the library tells them as one text."""
    found = _ERROR.fullmatch(description["error"] or "")
    return (int(found[1]), found[2] or "") if found else (Error.NONE, "")


def _ask(
    ask: Callable[[KafkaAdminClient], Answer],
    bootstrap: str,
    client_id: str,
    config: Mapping[str, str] | None,
    timeout_s: float,
) -> Answer:
    """Ask until there is an answer that lasts, or time is up."""
    properties = for_kafka_python(config or {})
    deadline = time.monotonic() + timeout_s
    with _complaint() as complaint:
        while True:
            left_ms = max(1, round((deadline - time.monotonic()) * 1000))
            try:
                # a client of its own for every try: it keeps the coordinator that it once found
                admin = KafkaAdminClient(
                    bootstrap_servers=bootstrap.split(","),
                    client_id=client_id,
                    bootstrap_timeout_ms=left_ms,
                    request_timeout_ms=left_ms,
                    **properties,
                )
                with closing(admin):
                    return ask(admin)
            except (KafkaError, OSError) as error:
                if not _did_nothing(error) or time.monotonic() + _PAUSE_S > deadline:
                    if isinstance(error, BrokerResponseError) and not _gave_up(error):
                        raise
                    raise UnreachableError(
                        _told(bootstrap, config, complaint() or str(error))
                    ) from error
                time.sleep(_PAUSE_S)


def _did_nothing(error: BaseException) -> bool:
    """Say whether it is safe to ask again: nothing was sent, or the broker declined."""
    if isinstance(error, BrokerResponseError):
        return error.errno in NOT_SERVED_YET
    return isinstance(error, UnknownBrokerIdError | NodeNotReadyError)


def _told(bootstrap: str, config: Mapping[str, str] | None, why: str) -> str:
    hint = ""
    if "sasl.username" in (config or {}) and "disconnected" in why:
        hint = "; brokers hang up so on a wrong name or password, too"
    return f"no answer from {bootstrap}: {' '.join(why.split())}{hint}"


def _gave_up(error: BaseException) -> bool:
    """Say whether the library waited in vain: it tells some of that as if a broker had said it."""
    return isinstance(error, RequestTimedOutError | KafkaTimeoutError)


class _Complaints(logging.Handler):
    """Keeps the last error logged: the library tells its log alone why it could not connect.

    What a broker said, such as that a password is wrong, counts more than a connection's end.
    """

    error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        for told in record.args if isinstance(record.args, tuple) else ():
            if not isinstance(told, KafkaError | OSError) or _gave_up(told):
                continue
            if isinstance(told, BrokerResponseError) or not isinstance(
                self.error, BrokerResponseError
            ):
                self.error = told


@contextmanager
def _complaint() -> Iterator[Callable[[], str]]:
    """Inside the block, keep the library's warnings off the screen; yields why it failed."""
    handler = _Complaints(logging.WARNING)
    logger = logging.getLogger("kafka")
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield lambda: str(handler.error or "")
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated
