"""Client properties as arguments of a kafka-python client."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from scenarios import oauth_token
from scenarios.client_properties import KEYS, PropertiesError, read, require_whole

__all__ = ["KEYS", "PropertiesError", "for_kafka_python", "read"]

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
