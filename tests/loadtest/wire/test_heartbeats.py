"""A heartbeat that is sent again: only its correlation id changes. The server is played by kio."""

import io
import socket
import struct
from collections.abc import Iterator

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from kafka_protocol.apis import ApiKey
from kafka_protocol.errors import Error
from kafka_protocol.kio_bodies import to_body, to_entity
from loadtest.wire.connection import Connection, WireError, known

LOWEST, HIGHEST = known("HEARTBEAT")
VERSIONS = range(LOWEST, HIGHEST + 1)


class Server:
    """Reads whole requests, and answers on demand."""

    def __init__(self) -> None:
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.connection = Connection("127.0.0.1", self._listens.getsockname()[1], "a client")
        self._socket, _ = self._listens.accept()

    def close(self) -> None:
        self.connection.close()
        self._socket.close()
        self._listens.close()

    def request(self) -> bytes:
        """Return the next request, its length in front."""
        length = self._socket.recv(4, socket.MSG_WAITALL)
        return length + self._socket.recv(*struct.unpack(">i", length), socket.MSG_WAITALL)

    def answer(self, version: int, correlation_id: int, error: int, throttle_ms: int = 0) -> None:
        schema = load_response_schema(ApiKey.HEARTBEAT, version)
        body = to_entity(schema, {"errorCode": error, "throttleTimeMs": throttle_ms})
        header = schema.__header_schema__
        self._write(_encoded(header(correlation_id=correlation_id), body))

    def _write(self, payload: bytes) -> None:
        self._socket.sendall(struct.pack(">i", len(payload)) + payload)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def body(generation: int = 7, **more: object) -> dict[str, object]:
    fields = {"groupId": "g", "generationId": generation, "memberId": "m", "groupInstanceId": "i"}
    return fields | more


@pytest.mark.parametrize("version", VERSIONS)
def test_its_bytes_are_those_of_kio_in_every_version(server: Server, version: int) -> None:
    schema = load_request_schema(ApiKey.HEARTBEAT, version)
    header = schema.__header_schema__
    bodies = [body(), body(), body(8), body(8), body(8, memberId="n"), body()]
    for correlation_id, sent in enumerate(bodies, start=1):
        server.connection.send("HEARTBEAT", version, sent)
        payload = _encoded(
            header(
                request_api_key=ApiKey.HEARTBEAT,
                request_api_version=version,
                correlation_id=correlation_id,
                client_id="a client",
            ),
            to_entity(schema, sent),
        )
        assert server.request() == struct.pack(">i", len(payload)) + payload


def test_another_version_or_a_body_that_its_caller_changes_is_another_request(
    server: Server,
) -> None:
    changing = body()
    for version, generation in ((4, 7), (0, 7), (4, 8), (4, 9)):
        changing["generationId"] = generation
        exchange = server.connection.send("HEARTBEAT", version, changing)
        request = server.request()
        _, _, sent, _ = struct.unpack_from(">ihhi", request)
        assert sent == version
        assert _generation(request, version) == exchange.request["generationId"] == generation


@pytest.mark.parametrize("version", VERSIONS)
def test_every_answer_is_read(server: Server, version: int) -> None:
    throttles = version > 0
    for correlation_id, (error, throttle_ms) in enumerate(
        [
            (Error.NONE, 0),
            (Error.NONE, 0),
            (Error.NONE, 300 * throttles),
            (Error.REBALANCE_IN_PROGRESS, 0),
            (Error.FENCED_INSTANCE_ID, 0),
            (Error.REBALANCE_IN_PROGRESS, 0),
            (Error.NONE, 0),
        ],
        start=1,
    ):
        exchange = server.connection.send("HEARTBEAT", version, body())
        server.answer(version, correlation_id, error, throttle_ms)
        wanted = {"errorCode": int(error)} | ({"throttleTimeMs": throttle_ms} if throttles else {})
        assert server.connection.wait(exchange, 30.0) == wanted


def test_answers_are_no_common_object(server: Server) -> None:
    answers = []
    for correlation_id in (1, 2):
        exchange = server.connection.send("HEARTBEAT", 4, body())
        server.answer(4, correlation_id, Error.NONE)
        answers.append(server.connection.wait(exchange, 30.0))
    answers[0]["errorCode"] = int(Error.FENCED_INSTANCE_ID)
    assert answers[1]["errorCode"] == Error.NONE


def test_an_answer_to_another_request_is_refused(server: Server) -> None:
    exchange = server.connection.send("HEARTBEAT", 4, body())
    server.answer(4, 2, Error.NONE)
    with pytest.raises(WireError, match="out of order"):
        server.connection.wait(exchange, 30.0)


def _generation(request: bytes, version: int) -> int:
    schema = load_request_schema(ApiKey.HEARTBEAT, version)
    _, start = entity_reader(schema.__header_schema__)(request[4:], 0)
    entity, _ = entity_reader(schema)(request[4:], start)
    return int(to_body(entity)["generationId"])


def _encoded(*entities: object) -> bytes:
    buffer = io.BytesIO()
    for entity in entities:
        entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
