"""What the Python adapters share: what they have to join, and the lines that they print.

The lines are those of Kafka's VerifiableConsumer: JSON objects with a `name` and a `timestamp`.
"""

import json
import os
import re
import select
import signal
import ssl
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

BOOTSTRAP = os.environ["GROUPQUAKE_BOOTSTRAP"]
GROUP = os.environ["GROUPQUAKE_GROUP"]
CLIENT_ID = os.environ["GROUPQUAKE_CLIENT_ID"]
INSTANCE_ID = os.environ["GROUPQUAKE_INSTANCE_ID"] or None
TOPICS = os.environ["GROUPQUAKE_TOPICS"].split(",")
ASSIGNOR = os.environ["GROUPQUAKE_ASSIGNOR"]
SESSION_TIMEOUT_MS = int(os.environ["GROUPQUAKE_SESSION_TIMEOUT_MS"])
HEARTBEAT_INTERVAL_MS = int(os.environ["GROUPQUAKE_HEARTBEAT_INTERVAL_MS"])
MAX_POLL_INTERVAL_MS = int(os.environ["GROUPQUAKE_MAX_POLL_INTERVAL_MS"])
COMMIT_INTERVAL_S = int(os.environ["GROUPQUAKE_COMMIT_INTERVAL_MS"]) / 1000
METADATA_MAX_AGE_MS = int(os.environ["GROUPQUAKE_METADATA_MAX_AGE_MS"])

stopping = threading.Event()
"""Set once SIGTERM asks for a clean close."""


def stop_on_sigterm() -> None:
    """Let SIGTERM set `stopping`."""
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())


def say(name: str, **fields: object) -> None:
    """Print a line, after one about the records that were polled until then."""
    consumed.say()
    _print(name, **fields)


def _print(name: str, **fields: object) -> None:
    line = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def partitions(pairs: Iterable[tuple[str, int]]) -> list[dict[str, object]]:
    """Return topics and partition numbers as a line has them."""
    return [{"topic": topic, "partition": number} for topic, number in sorted(pairs)]


def wait_to_poll() -> None:
    """Wait while nobody reads what is printed: so a member is made to poll no more."""
    select.select([], [sys.stdout], [])


class Consumed:
    """The records that were polled, in ranges of offsets that follow one another.

    They are printed once a second, and before each other line; `say` has to be called before a
    commit, too: a process that is killed after it has nothing left to print.
    """

    def __init__(self) -> None:
        self._ranges: dict[tuple[str, int], list[list[int]]] = {}
        self._said_s = 0.0

    def add(self, topic: str, partition: int, offset: int) -> None:
        """Take a record."""
        ranges = self._ranges.setdefault((topic, partition), [])
        if ranges and ranges[-1][1] + 1 == offset:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])

    def say_due(self) -> None:
        """Print what is not printed yet, once a second: the load reads every line."""
        if time.monotonic() >= self._said_s + 1:
            self.say()

    def say(self) -> None:
        """Print what is not printed yet."""
        if not self._ranges:
            return
        found = [
            {"topic": topic, "partition": number, "count": last - first + 1,
             "minOffset": first, "maxOffset": last}
            for (topic, number), ranges in self._ranges.items()
            for first, last in ranges
        ]  # fmt: skip
        self._ranges, self._said_s = {}, time.monotonic()
        _print("records_consumed", count=sum(one["count"] for one in found), partitions=found)


consumed = Consumed()
"""What this process has polled."""


class Commits:
    """When the next commit is due, and of what."""

    new = 0
    """How many records of assigned partitions came since the last commit, where that is counted."""

    def __init__(self) -> None:
        self._due_s = time.monotonic() + COMMIT_INTERVAL_S
        self._ends: dict[Any, int] = {}

    def due(self) -> bool:
        """Return whether one is due, and plan the next."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return False
        self._due_s = now_s + COMMIT_INTERVAL_S
        return True

    def add(self, polled: Mapping[Any, Sequence[Any]]) -> None:
        """Take polled records, by partition."""
        for partition, records in polled.items():
            for record in records:
                consumed.add(partition.topic, partition.partition, record.offset)
        consumed.say_due()
        self._ends |= {partition: records[-1].offset + 1 for partition, records in polled.items()}

    def take_due(self, assigned: Iterable[Any]) -> dict[Any, int]:
        """Return what is to be committed now, by partition: offsets of those that are assigned."""
        if not self.due():
            return {}
        consumed.say()
        mine = set(assigned)
        ends, self._ends = self._ends, {}
        return {one: offset for one, offset in ends.items() if one in mine}


def say_committed(offsets: Iterable[tuple[str, int, int]], error: object = None) -> None:
    """Print a commit of offsets by topic and partition: stored, or why not."""
    stored = [
        {"topic": topic, "partition": number, "offset": offset} for topic, number, offset in offsets
    ]
    why = {"error": str(error)} if error else {}
    say("offsets_committed", offsets=stored, success=not error, **why)


def security() -> dict[str, str]:
    """Return the client properties of TLS and SASL, in librdkafka's words.

    Lines `key=value`; what begins with a space is a further line of the value before.
    """
    file = os.environ.get("GROUPQUAKE_CLIENT_PROPERTIES")
    if not file:
        return {}
    entries = re.split(r"\n(?! )", Path(file).read_bytes().decode())
    pairs = (entry.partition("=") for entry in entries if entry)
    return {key: value.replace("\n ", "\n") for key, _, value in pairs}


_OF_KAFKA_PYTHON = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}


def security_of_kafka_python() -> dict[str, object]:
    """Return the same as arguments of kafka-python."""
    given = security()
    found: dict[str, object] = {
        name: given[key] for key, name in _OF_KAFKA_PYTHON.items() if key in given
    }
    if given.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl_check_hostname"] = False
    return found


def security_of_aiokafka() -> dict[str, object]:
    """Return the same as arguments of aiokafka."""
    given, found = security(), security_of_kafka_python()
    named = ("security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
    arguments = {name: found[name] for name in named if name in found}
    if "SSL" in given.get("security.protocol", ""):
        context = ssl.create_default_context(cafile=given.get("ssl.ca.location"))
        context.check_hostname = given.get("ssl.endpoint.identification.algorithm") != "none"
        if "ssl.certificate.location" in given:
            context.load_cert_chain(
                given["ssl.certificate.location"],
                given.get("ssl.key.location"),
                given.get("ssl.key.password"),
            )
        arguments["ssl_context"] = context
    return arguments
