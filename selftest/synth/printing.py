"""How a synthesized group's requests and coordinator lines read in `group.log`."""

import random
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka_protocol.apis import ApiKey
from kafka_protocol.request_log import LOGGER, PARTS_MS, printed
from reference_coordinator.classic.effects import Response
from selftest.mutants.wordings import body
from selftest.synth.clients import Client

Json = dict[str, Any]
HOST = "127.0.0.1"
PLACES = {
    "correlationId": 1_777_777_771,
    "committedOffset": 1_777_777_772,
    "totalTimeMs": 1_777_777_773,
    **{name: 1_777_777_774 + place for place, name in enumerate(PARTS_MS)},
}
"""Numbers that stand for what differs between requests that are otherwise the same."""
_PLACE = re.compile("|".join(map(str, PLACES.values())))


class Delays(NamedTuple):
    """How long a request takes in each part of its way, in µs, and on the network before it.

    `processor` is the time in the queue of the coordinator's event processor, `write` that of a
    record's replication.
    """

    network: int
    queue: int
    local: int
    processor: int
    write: int
    response_queue: int
    send: int


def delays(dice: random.Random, count: int = 4_096) -> list[Delays]:
    """Draw delays as on a machine that is not idle: most are short, and some a hundred times."""
    draw = lambda typical_us, spread: 1 + int(dice.lognormvariate(0.0, spread) * typical_us)
    return [
        Delays(draw(120, 0.5), draw(130, 1.1), draw(90, 1.0), draw(250, 1.0), draw(3_000, 0.8),
               draw(90, 1.1), draw(160, 0.9))
        for _ in range(count)
    ]  # fmt: skip


@dataclass(slots=True)
class Sent:
    """A request on its way; the oracle reads it as it reads an observed one.

    `read_ms` is when the broker read it, `handed_ms` when its handler handed it to the coordinator.
    """

    id: str
    broker: str
    api: str
    api_version: int
    client: Client
    request: Json
    correlation: int
    read_ms: float
    handed_ms: float
    took: Delays

    @property
    def client_id(self) -> str:
        """The client id of the request header."""
        return self.client.client_id

    @property
    def client_host(self) -> str:
        """The host that the request came from."""
        return f"/{HOST}"

    @property
    def response_fields(self) -> Json:
        """Nothing: the response is not there yet."""
        return {}


def answered(sent: Sent, response: Response, at_ms: float, more: int) -> tuple[float, str]:
    """Return when a request's line is written, and the line behind its time.

    The coordinator answered at `at_ms`. `more` is how many µs the parts lose by rounding down.
    """
    took = sent.took
    remote = max(0, int((at_ms - sent.handed_ms) * 1_000))
    total = took.queue + took.local + remote + took.response_queue + took.send
    offset = (sent.client.committed,) if sent.api == "OFFSET_COMMIT" else ()
    numbers = (sent.correlation, *offset, (total + more) / 1_000, took.queue / 1_000,
               took.local / 1_000, remote / 1_000, took.response_queue / 1_000,
               took.send / 1_000)  # fmt: skip
    return sent.read_ms + (total + more + 8) / 1_000, _text(sent, response) % numbers


def _text(sent: Sent, response: Response) -> str:
    """Return a request's line with places for its numbers; like requests of a client share it."""
    if sent.api not in ("HEARTBEAT", "OFFSET_COMMIT"):
        return _with_places(sent, response)
    key = sent.api, response, sent.client.member_id, sent.client.generation
    text = sent.client.texts.get(key)
    if text is None:
        text = sent.client.texts[key] = _with_places(sent, response)
    return text


def _with_places(sent: Sent, response: Response) -> str:
    text = printed(_content(sent, response)).replace("%", "%%")
    thread = (
        f"data-plane-kafka-network-thread-{sent.broker}-PLAINTEXT-PLAINTEXT"
        f"-{sent.client.network_thread}"
    )
    return f"{thread} DEBUG {_PLACE.sub('%s', text)} ({LOGGER})"


def _content(sent: Sent, response: Response) -> Json:
    client = sent.client
    return {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": int(ApiKey[sent.api]),
            "requestApiVersion": sent.api_version,
            "correlationId": PLACES["correlationId"],
            "clientId": client.client_id,
            "requestApiKeyName": sent.api,
        },
        "request": sent.request,
        "response": body(response, sent),
        "connection": client.connection,
        "totalTimeMs": PLACES["totalTimeMs"],
        "requestQueueTimeMs": PLACES["requestQueueTimeMs"],
        "localTimeMs": PLACES["localTimeMs"],
        "remoteTimeMs": PLACES["remoteTimeMs"],
        "throttleTimeMs": 0,
        "responseQueueTimeMs": PLACES["responseQueueTimeMs"],
        "sendTimeMs": PLACES["sendTimeMs"],
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": {
            "softwareName": client.software.name,
            "softwareVersion": client.software.version,
        },
    }


def request_body(client: Client, api: str, group: str, session_ms: int, rebalance_ms: int,
                 partition: int, subscription: str, topic: str) -> Json:  # fmt: skip
    """Return the body of a request, with the fields of the client's version in their order."""
    newer = client.software.join > 5
    who = {"memberId": client.member_id, "groupInstanceId": client.instance}
    if api == "JOIN_GROUP":
        asked = {
            "groupId": group,
            "sessionTimeoutMs": session_ms,
            "rebalanceTimeoutMs": rebalance_ms,
            **who,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": subscription}],
        }
        return {**asked, "reason": None} if newer else asked
    if api == "SYNC_GROUP":
        chosen = {"protocolType": "consumer", "protocolName": "range"} if newer else {}
        return {"groupId": group, "generationId": client.generation, **who, **chosen,
                "assignments": client.work}  # fmt: skip
    if api == "HEARTBEAT":
        return {"groupId": group, "generationId": client.generation, **who}
    if api == "LEAVE_GROUP":
        if newer:
            return {"groupId": group, "members": [{**who, "reason": client.software.leave_reason}]}
        return {"groupId": group, "memberId": client.member_id}
    offset = {"partitionIndex": partition, "committedOffset": PLACES["committedOffset"],
              "committedLeaderEpoch": 0, "committedMetadata": ""}  # fmt: skip
    topics = [{"name": topic, "partitions": [offset]}]
    return {"groupId": group, "generationIdOrMemberEpoch": client.generation, **who,
            "topics": topics}  # fmt: skip
