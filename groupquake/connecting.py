"""The first connection to a cluster of the user's: who answers, and whom it lets in.

librdkafka asks first, since it says at once what a connection failed at; kafka-python tries again
until its time is up, and only then says that there was no answer.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from chaos.errors import UnreachableError
from groupquake.exits import NotAuthorizedError
from groupquake.kafka_admin import kafka_python
from scenarios.client_properties import PropertiesError, user_of

ANSWER_S = 6.0
CONNECT_S = 20.0
_POLL_S = 0.05
_ALL_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 (librdkafka's own codes begin with _)
_DECISIVE = (KafkaError._AUTHENTICATION, KafkaError._SSL)  # noqa: SLF001
_NOT_REACHED = "in state CONNECT"
"""What librdkafka says of a connection that ended before its first byte."""


@contextmanager
def connected(bootstrap: str, properties: Mapping[str, str]) -> Iterator[KafkaAdminClient]:
    """Yield a client of a cluster that answers. Raises as `require_answer` and `kafka_python`."""
    require_answer(bootstrap, properties)
    with kafka_python(bootstrap, properties, f"no answer from {bootstrap}", CONNECT_S) as client:
        yield client


def require_answer(
    bootstrap: str, properties: Mapping[str, str], within_s: float = ANSWER_S
) -> None:
    """Return once a broker has answered.

    Raises NotAuthorizedError as soon as a broker and this client refuse each other (TLS, SASL, the
    protocol), UnreachableError if none answers in time, and PropertiesError if no client can be
    made of the properties.
    """
    errors: list[KafkaError] = []
    own = {"bootstrap.servers": bootstrap, "log_level": 0, "error_cb": errors.append}
    settings: dict[str, Any] = {**properties, **own}
    try:
        client = AdminClient(settings)
    except KafkaException as error:
        why = _text(error.args[0])
        raise PropertiesError(f"the client properties cannot be used: {why}") from error
    answer = client.describe_cluster(request_timeout=within_s)
    deadline = time.monotonic() + within_s
    while not answer.done() and time.monotonic() < deadline:
        client.poll(_POLL_S)
        if (refusal := _refusal(errors)) is not None:
            protocol = properties.get("security.protocol", "PLAINTEXT")
            raise NotAuthorizedError(
                f"authentication failed for {user_of(properties)} at {bootstrap}, with"
                f" security.protocol {protocol}: {refusal}; correct the client properties"
            )
    if not answer.done() or answer.exception() is not None:
        first = _text(errors[0]) if errors else f"none within {within_s:g} s"
        raise UnreachableError(f"no answer from {bootstrap}: {first}")


def _refusal(errors: Sequence[KafkaError]) -> str | None:
    """Return what a broker or this client did not accept; None as long as there is nothing."""
    causes = [error for error in errors if error.code() != _ALL_DOWN]
    for error in causes:
        if error.code() in _DECISIVE:
            return _text(error)
    if len(causes) == len(errors):
        return None
    # every connection has failed, and librdkafka is silent about those that were closed on it
    reached = [error for error in causes if _NOT_REACHED not in error.str()]
    if not causes:
        return "the connection was closed without an answer, as by a broker of another protocol"
    return _text(reached[0]) if reached else None


def _text(error: KafkaError) -> str:
    """Return what librdkafka says, without the time that it took."""
    text: str = error.str()
    return text.partition(" (after ")[0]
