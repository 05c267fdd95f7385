"""The request log's lines about completed requests: parsed in both forms, printed as JSON.

From 2.8 on (KAFKA-10525) a line holds JSON; before, text (`request_log.text`). Both are parsed to
the content of the JSON: `requestHeader`, `request`, `response`, `connection` and times in ms. What
Kafka writes as JSON is decoded faster by `typed`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_protocol.apis import ApiKey
from kafka_protocol.request_log import text
from kafka_protocol.request_log.typed import Typed, typed

LOGGER = "kafka.request.logger"
COMPLETED = "Completed request:"
"""The start of the body of every such line."""

PARTS_MS = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs",
            "sendTimeMs")  # fmt: skip
"""The parts of a request's time, `totalTimeMs`."""


def parsed(body: str) -> Any:
    """Parse the body of a line, which begins with `Completed request:`.

    The content is a mapping, unless the line was altered. Raises ValueError for what
    is neither JSON nor an unambiguous text of 2.4 to 2.7, RecursionError for JSON that is too deep.
    """
    content = body[len(COMPLETED) :]
    return json.loads(content) if content.startswith("{") else text.content(content)


def printed(content: Mapping[str, Any]) -> str:
    """Print the body of a line from 2.8 on."""
    return COMPLETED + as_json(content)


ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that does not log in."""


def header(api: str, version: int, correlation_id: int, client_id: str | None) -> dict[str, Any]:
    """Return the header of a request as a line has it."""
    return {
        "requestApiKey": int(ApiKey[api]),
        "requestApiVersion": version,
        "correlationId": correlation_id,
        "clientId": client_id,
        "requestApiKeyName": api,
    }


def completed(
    header: Mapping[str, Any],
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    connection: str,
    total_ms: float,
    parts_ms: Sequence[float],
) -> dict[str, Any]:
    """Return what a line says of a request, but for its `sender`; `parts_ms` as `PARTS_MS`."""
    times = [("totalTimeMs", total_ms), *zip(PARTS_MS, parts_ms, strict=True)]
    times.insert(4, ("throttleTimeMs", 0))  # in Kafka's order
    content = {"isForwarded": False, "requestHeader": header, "request": request}
    return content | {"response": response, "connection": connection} | dict(times)


def sender(
    name: str, version: str, security: str = "PLAINTEXT", principal: str | None = ANONYMOUS
) -> dict[str, Any]:
    """Return the end of a line: what a client is, and how it is connected."""
    known = {} if principal is None else {"principal": principal}
    information = {"softwareName": name, "softwareVersion": version}
    return {
        "securityProtocol": security, **known, "listener": security,
        "clientInformation": information,
    }  # fmt: skip


def as_json(content: Mapping[str, Any]) -> str:
    """Print an object as Kafka's JSON writer does."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def typed_of(body: str) -> Typed | None:
    """Decode the body of a line into types; None for what `parsed` has to read."""
    if not body.startswith("{", len(COMPLETED)):
        return None
    return typed(body[len(COMPLETED) :].encode(errors="surrogatepass"))


__all__ = [
    "ANONYMOUS", "COMPLETED", "LOGGER", "PARTS_MS", "Typed", "as_json", "completed", "header",
    "parsed", "printed", "sender", "typed", "typed_of",
]  # fmt: skip
