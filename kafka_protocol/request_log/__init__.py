"""The request log's lines about completed requests, in both forms: parsed and printed.

From 2.8 on (KAFKA-10525) a line holds JSON; before, text (`request_log.text`). Both are parsed to
what the JSON says: `requestHeader`, `request`, `response`, `connection` and times in ms.
"""

import json
from collections.abc import Mapping
from typing import Any

from kafka_protocol.request_log import text

LOGGER = "kafka.request.logger"
COMPLETED = "Completed request:"
"""What the body of every such line begins with."""

PARTS_MS = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs",
            "sendTimeMs")  # fmt: skip
"""What a request's time, `totalTimeMs`, is made of."""


def parsed(body: str) -> Any:
    """Return what the body of a line tells; it begins with `Completed request:`.

    It is a mapping, unless somebody altered the line. Raises ValueError where it is neither JSON
    nor an unambiguous text of 2.4 to 2.7, RecursionError for JSON that is too deep.
    """
    told = body[len(COMPLETED) :]
    return json.loads(told) if told.startswith("{") else text.content(told)


def printed(content: Mapping[str, Any], *, as_text: bool = False) -> str:
    """Print the body of a line: as JSON, or as the text of 2.4 to 2.7."""
    if as_text:
        return COMPLETED + text.printed(content)
    return COMPLETED + json.dumps(content, separators=(",", ":"), ensure_ascii=False)
