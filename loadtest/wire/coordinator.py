"""How a client finds the coordinator of its group, and connects to it.

A connection is secured as the client properties say: TLS, then a SASL login. kafka-python computes
what the mechanisms exchange; OAUTHBEARER is not among them here.
"""

import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import cache
from random import shuffle
from typing import Any

from kafka.net.sasl import SASL_MECHANISMS

from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import NOT_SERVED, Error, name_of
from kafka_protocol.kio_bodies import Body
from loadtest.wire.connection import Connection, Exchange, WireError, negotiate
from scenarios.client_properties import Properties, uses_sasl, uses_tls

_APIS = (*COORDINATOR_APIS, "FIND_COORDINATOR", "METADATA", "OFFSET_FETCH")
_MOST = {"OFFSET_COMMIT": 9, "OFFSET_FETCH": 7, "FIND_COORDINATOR": 3, "METADATA": 9}
"""The last versions that name topics by name, and one group a request."""


_HANDSHAKE, _AUTHENTICATE = 1, 1
"""The versions of SaslHandshake and SaslAuthenticate, which all brokers from 2.4 on have."""


class MovedError(WireError):
    """No broker, or another one, coordinates the group now."""


class Coordinator:
    """Connects to the coordinator of a group, in the name of a client.

    `bootstrap` are servers, comma-separated; raises ValueError if one is none. `gate` returns once
    the client's process is not paused: a connection neither sends nor hears anything before.
    """

    def __init__(
        self,
        group: str,
        client_id: str,
        bootstrap: str,
        properties: Properties,
        gate: Callable[[], object],
    ) -> None:
        self._group = group
        self._client_id = client_id
        self._servers = [_address(server) for server in bootstrap.split(",")]
        self._properties = properties
        self._tls = _tls(frozenset(properties.items())) if uses_tls(properties) else None
        self._gate = gate

    def connect(self) -> tuple[Connection, Mapping[str, int]]:
        """Return a connection, and the versions of the APIs to speak there.

        Raises MovedError if there is no coordinator yet, WireError if no broker answers.
        """
        shuffle(self._servers)
        *others, last = self._servers
        for server in others:
            try:
                found = self._connect(*server)
            except WireError:
                continue  # another may be up
            return self._by_way_of(*server, *found)
        return self._by_way_of(*last, *self._connect(*last))

    def _by_way_of(
        self, host: str, port: int, connection: Connection, versions: Mapping[str, int]
    ) -> tuple[Connection, Mapping[str, int]]:
        """Ask a broker for the coordinator, and connect to that."""
        try:
            body = {"key": self._group, "keyType": 0}
            answer = connection.ask("FIND_COORDINATOR", versions["FIND_COORDINATOR"], body)
            self._require_found(int(answer["errorCode"]))
            if (answer["host"], answer["port"]) == (host, port):
                return connection, versions
        except BaseException:
            connection.close()
            raise
        connection.close()
        return self._connect(str(answer["host"]), int(answer["port"]))

    def _require_found(self, code: int) -> None:
        if code != Error.NONE:
            kind = MovedError if code in NOT_SERVED else WireError
            raise kind(f"{self._client_id}: FIND_COORDINATOR: {name_of(code)}")

    def _connect(self, host: str, port: int) -> tuple[Connection, Mapping[str, int]]:
        self._gate()
        connection = _GatedConnection(host, port, self._client_id, self._gate, self._tls)
        try:
            shared = negotiate(connection, _APIS)
            log_in(connection, self._properties)
        except BaseException:
            connection.close()
            raise
        return connection, {
            api: min(newest, _MOST.get(api, newest)) for api, (_, newest) in shared.items()
        }


class _GatedConnection(Connection):
    """A connection of a process that may be paused."""

    def __init__(
        self, host: str, port: int, client_id: str, gate: Callable[[], object], tls: Any
    ) -> None:
        super().__init__(host, port, client_id, tls=tls)
        self._gate = gate

    def send(self, api: str, version: int, body: Body) -> Exchange:
        """Send a request, unless paused."""
        self._gate()
        return super().send(api, version, body)

    def receive(self, timeout_s: float) -> list[Exchange]:
        """Read once, and hear of it once not paused."""
        try:
            received = super().receive(timeout_s)
        except WireError:
            self._gate()
            raise
        self._gate()
        return received


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.strip().rpartition(":")
    return host.strip("[]"), int(port)


@cache
def _tls(items: frozenset[tuple[str, str]]) -> ssl.SSLContext:
    """Return what connections with such properties are encrypted with, one for all.

    Raises OSError for a key or certificate that cannot be used.
    """
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
