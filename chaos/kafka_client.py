"""Clients of kafka-python, by client properties (`scenarios.client_properties`)."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from chaos.errors import ChaosError, UnreachableError
from chaos.timing import REQUEST_S
from scenarios import oauth_token
from scenarios.client_properties import require_whole

logging.getLogger("kafka").addHandler(logging.NullHandler())  # faults stop brokers

_NAMES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "security.protocol": ("security_protocol", str),
    "sasl.mechanism": ("sasl_mechanism", str),
    "sasl.username": ("sasl_plain_username", str),
    "sasl.password": ("sasl_plain_password", str),
    "ssl.ca.location": ("ssl_cafile", str),
    "ssl.certificate.location": ("ssl_certfile", str),
    "ssl.key.location": ("ssl_keyfile", str),
    "ssl.key.password": ("ssl_password", str),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", lambda text: text == "https"),
}


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
    """Gives a new token for each connection."""

    def __init__(self, ask: Callable[[], str]) -> None:
        super().__init__()
        self._ask = ask

    def token(self) -> str:
        """Return a token."""
        return self._ask()


def for_kafka_python(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return properties as arguments of a kafka-python client. Raises PropertiesError."""
    require_whole(properties)
    named = {
        name: convert(properties[key])
        for key, (name, convert) in _NAMES.items()
        if key in properties
    }
    if properties.get("sasl.mechanism") == "OAUTHBEARER":
        named["sasl_oauth_token_provider"] = _Tokens(partial(oauth_token.token, properties))
    return named


@contextmanager
def admin_client(
    bootstrap: str, properties: Mapping[str, str], timeout_s: float, **more: Any
) -> Iterator[KafkaAdminClient]:
    """Yield a client. Raises KafkaError, OSError and PropertiesError."""
    timeout_ms = max(1, round(timeout_s * 1000))
    client = KafkaAdminClient(
        bootstrap_servers=bootstrap.split(","),
        bootstrap_timeout_ms=timeout_ms,
        request_timeout_ms=timeout_ms,
        **for_kafka_python(properties),
        **more,
    )
    with closing(client):
        yield client


@contextmanager
def kafka_python(
    bootstrap: str, properties: Mapping[str, str], matter: str, timeout_s: float = REQUEST_S
) -> Iterator[KafkaAdminClient]:
    """Yield a client; its errors become ChaosErrors that begin with `matter`.

    That is an UnreachableError if no broker answers at first.
    """
    kind: type[ChaosError] = UnreachableError
    try:
        with admin_client(bootstrap, properties, timeout_s) as client:
            kind = ChaosError
            yield client
    except (KafkaError, OSError) as error:
        raise kind(f"{matter} ({error})") from error
