"""What real leaders received and sent, read from brokers' request logs.

    python -m tests.reference_coordinator.assignors.leaders RUN…

takes a sample out of run folders into `leaders.json.xz`.
"""

import json
import lzma
import sys
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from pathlib import Path
from random import Random
from typing import Any

from kafka_protocol.request_log import COMPLETED
from reference_coordinator.assignors import Assignment, Member, Subscription

SAMPLE = Path(__file__).parent / "leaders.json.xz"
EACH = 40
"""Sampled leaders of each kind."""
BIGGEST = 12
"""Bigger groups are left out."""


def in_order_of_librdkafka(members: Iterable[Member]) -> list[Member]:
    """By instance id where two members have one, by member id where one of them has none.

    No order at all in a group of both kinds, if instance ids sort otherwise than member ids do.
    """
    return sorted(members, key=cmp_to_key(_compared_by_librdkafka))


def _compared_by_librdkafka(one: Member, other: Member) -> int:
    if one.group_instance_id is not None and other.group_instance_id is not None:
        a, b = one.group_instance_id.encode(), other.group_instance_id.encode()
    else:
        a, b = one.member_id.encode(), other.member_id.encode()
    return (a > b) - (a < b)


@dataclass(frozen=True)
class Led:
    """One leader's assignment. Members are (id, instance, blob), shares blobs by member id."""

    client: str
    assignor: str
    received: tuple[tuple[str, str | None, str], ...]
    sent: Mapping[str, str]

    @property
    def kind(self) -> str:
        """Static, dynamic, or both."""
        static = [instance is not None for _, instance, _ in self.received]
        return "static" if all(static) else "mixed" if any(static) else "dynamic"

    @property
    def members(self) -> list[Member]:
        """The members, their blobs read."""
        return [
            Member(member_id, Subscription.decode(b64decode(blob)), instance)
            for member_id, instance, blob in self.received
        ]

    @property
    def shares(self) -> dict[str, Assignment]:
        """The shares, their blobs read."""
        return {key: Assignment.decode(b64decode(blob)) for key, blob in self.sent.items()}


def read(requests: Iterable[Mapping[str, Any]]) -> Iterator[Led]:
    """Pair the JoinGroup answer that a leader got with the SyncGroup request that it sent.

    Only clients that say who they are: the others are wire-level members, which share out nothing.
    """
    responses = {}
    for request in requests:
        body, answer = request["request"], request["response"]
        api = request["requestHeader"]["requestApiKeyName"]
        if api == "JOIN_GROUP" and answer.get("members") and "protocolName" in answer:
            responses[body["groupId"], answer["generationId"], answer["memberId"]] = answer
        elif api == "SYNC_GROUP" and body.get("assignments"):
            joined = responses.get((body["groupId"], body["generationId"], body["memberId"]))
            client = request["clientInformation"]
            if joined is not None and client["softwareName"] != "unknown":
                yield Led(
                    client=f"{client['softwareName']} {client['softwareVersion']}",
                    assignor=joined["protocolName"],
                    received=tuple(
                        (member["memberId"], member["groupInstanceId"], member["metadata"])
                        for member in joined["members"]
                    ),
                    sent={share["memberId"]: share["assignment"] for share in body["assignments"]},
                )


def sampled() -> list[Led]:
    """Read the sample."""
    content = json.loads(lzma.decompress(SAMPLE.read_bytes()))
    return [Led(**{**led, "received": tuple(map(tuple, led["received"]))}) for led in content]


def sample(runs: Iterable[str]) -> None:
    """Take the sample."""
    kinds: dict[tuple[str, str], dict[str, Led]] = defaultdict(dict)
    for log in sorted(log for run in runs for log in Path(run).rglob("group.log")):
        for led in read(_requests(log)):
            if len(led.received) <= BIGGEST:
                kinds[led.assignor, led.kind].setdefault(repr(led), led)
    picked = [
        vars(led)
        for kind in sorted(kinds)
        for led in Random(0).sample([*kinds[kind].values()], min(EACH, len(kinds[kind])))
    ]
    SAMPLE.write_bytes(lzma.compress(json.dumps(picked).encode(), preset=9))


def _requests(log: Path) -> Iterator[Mapping[str, Any]]:
    for line in log.read_text().splitlines():
        _, found, rest = line.partition(COMPLETED)
        if found and "_GROUP" in rest:
            request, _ = json.JSONDecoder().raw_decode(rest)
            if "clientInformation" in request:
                yield request


if __name__ == "__main__":
    sample(sys.argv[1:])
