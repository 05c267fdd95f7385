"""How a connection is secured, as the client properties say: TLS, then a SASL login.

kafka-python computes what the mechanisms exchange; OAUTHBEARER is not among them here.
"""

import ssl
from base64 import b64decode, b64encode
from functools import cache

from kafka.net.sasl import SASL_MECHANISMS

from kafka_protocol.errors import Error, name_of
from loadtest.wire.connection import Connection, WireError
from scenarios.client_properties import Properties, uses_sasl, uses_tls

_HANDSHAKE, _AUTHENTICATE = 1, 1
"""The versions of SaslHandshake and SaslAuthenticate, which all brokers from 2.4 on have."""


def tls_context(properties: Properties) -> ssl.SSLContext | None:
    """Return what connections are encrypted with, one for all; None if they are not.

    Raises OSError for a key or certificate that cannot be used.
    """
    return _context(tuple(sorted(properties.items()))) if uses_tls(properties) else None


@cache
def _context(items: tuple[tuple[str, str], ...]) -> ssl.SSLContext:
    properties = dict(items)
    context = ssl.create_default_context(cafile=properties.get("ssl.ca.location"))
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if (certificate := properties.get("ssl.certificate.location")) is not None:
        key, password = properties.get("ssl.key.location"), properties.get("ssl.key.password")
        context.load_cert_chain(certificate, key, password)
    return context


def log_in(connection: Connection, properties: Properties) -> None:
    """Authenticate with SASL, if the properties say so. Raises WireError if the broker refuses."""
    if not uses_sasl(properties):
        return
    name = properties["sasl.mechanism"]
    agreed = connection.ask("SASL_HANDSHAKE", _HANDSHAKE, {"mechanism": name})
    _require(connection, int(agreed["errorCode"]), f"offers {', '.join(agreed['mechanisms'])}")
    mechanism = SASL_MECHANISMS[name](
        security_protocol=properties["security.protocol"],
        sasl_mechanism=name,
        sasl_plain_username=properties["sasl.username"],
        sasl_plain_password=properties["sasl.password"],
    )
    while not mechanism.is_done():
        sent = b64encode(mechanism.auth_bytes()).decode()
        answer = connection.ask("SASL_AUTHENTICATE", _AUTHENTICATE, {"authBytes": sent})
        _require(connection, int(answer["errorCode"]), answer["errorMessage"] or "")
        mechanism.receive(b64decode(answer["authBytes"]))


def _require(connection: Connection, error: int, said: str) -> None:
    if error != Error.NONE:
        connection.close()
        raise WireError(
            f"{connection.name}: the broker refuses the login, {name_of(error)}"
            f" ({said}); check the client properties"
        )
