"""Who answers at a cluster of the user's, whom it lets in, and what it allows him.

librdkafka connects first, since it says at once what a connection failed at; kafka-python tries
again until its time is up, and only then says that there was no answer.

Rights are asked for before anything is made. Brokers look at ACLs before they look for what a
request names. So each right is asked for with a request about a name that is not there: the answer
is AUTHORIZATION_FAILED, or that there is no such topic, or that another broker coordinates the
group. If the name were there, none would change it: records are deleted up to offset 0, offsets of
no topic, the heartbeat is nobody's, and brokers refuse a batch with a wrong checksum
(CORRUPT_MESSAGE). Tried on 2.4.1, 3.9.1 and 4.3.0 with each right taken away in turn; nothing was
made, not even `__consumer_offsets`. What does not tell it:

- operations that brokers list (KIP-430): from 4.0 on not of a group that is not there
- DeleteTopics: with KRaft it is UNKNOWN_TOPIC_OR_PARTITION with the right and without it
- Produce without a batch: 2.4.1 closes the connection
"""

import json
import re
import shlex
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from kafka.protocol import admin, consumer, metadata, producer

from chaos.errors import UnreachableError
from chaos.kafka_client import kafka_python
from groupquake.exits import NotAuthorizedError
from groupquake.timing import ANSWER_POLL_S, ANSWER_S, CONNECT_S
from kafka_protocol.errors import BrokerError
from kafka_protocol.offsets_topic import OFFSETS_TOPIC
from scenarios import Experiment
from scenarios.client_properties import ANONYMOUS, PropertiesError, user_of
from scenarios.faults.topic import AddPartitions
from scenarios.targets import CoordinatorOf

_ALL_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 (librdkafka's own codes begin with _)
_DECISIVE = (KafkaError._AUTHENTICATION, KafkaError._SSL)  # noqa: SLF001
_NOT_REACHED = "in state CONNECT"
"""What librdkafka says of a connection that ended before its first byte."""
Of = Literal["topic", "group", "cluster"]
NEEDED: Mapping[Of, tuple[str, ...]] = {
    "topic": ("CREATE", "DESCRIBE", "READ", "WRITE", "DELETE"),
    "group": ("READ", "DESCRIBE", "DELETE"),
}
"""What every run does with its topics and groups, as ACLs name it."""
_REFUSED = {BrokerError.TOPIC_AUTHORIZATION_FAILED, BrokerError.GROUP_AUTHORIZATION_FAILED}
_REFUSAL = re.compile(
    "(group|topic|cluster)(?:[_ ]?authorization[_ ]?failed)"
    "|not authorized to access (?:this )?(group|topic)",
    re.IGNORECASE,
)
"""What an ACL refused, in the words of Kafka, librdkafka, the Python libraries, and sarama."""


@contextmanager
def connected(bootstrap: str, properties: Mapping[str, str]) -> Iterator[KafkaAdminClient]:
    """Yield a client of a cluster that answers. Raises as `require_answer` and `kafka_python`."""
    require_answer(bootstrap, properties)
    with kafka_python(bootstrap, properties, f"no answer from {bootstrap}", CONNECT_S) as client:
        yield client


def require_answer(
    bootstrap: str, properties: Mapping[str, str], within_s: float = ANSWER_S
) -> None:
    """Return once a broker has answered.

    Raises NotAuthorizedError as soon as a broker and this client refuse each other (TLS, SASL, the
    protocol), UnreachableError if none answers in time, and PropertiesError if no client can be
    made of the properties.
    """
    errors: list[KafkaError] = []
    own = {"bootstrap.servers": bootstrap, "log_level": 0, "error_cb": errors.append}
    settings: dict[str, Any] = {**properties, **own}
    try:
        client = AdminClient(settings)
    except KafkaException as error:
        why = _text(error.args[0])
        raise PropertiesError(f"the client properties cannot be used: {why}") from error
    answer = client.describe_cluster(request_timeout=within_s)
    deadline = time.monotonic() + within_s
    while not answer.done() and time.monotonic() < deadline:
        client.poll(ANSWER_POLL_S)
        if (refusal := _refusal(errors)) is not None:
            protocol = properties.get("security.protocol", "PLAINTEXT")
            raise NotAuthorizedError(
                f"authentication failed for {user_of(properties)} at {bootstrap}, with"
                f" security.protocol {protocol}: {refusal}; correct the client properties"
            )
    if not answer.done() or answer.exception() is not None:
        first = _text(errors[0]) if errors else f"none within {within_s:g} s"
        raise UnreachableError(f"no answer from {bootstrap}: {first}")


def _refusal(errors: Sequence[KafkaError]) -> str | None:
    """Return what a broker or this client did not accept; None as long as there is nothing."""
    causes = [error for error in errors if error.code() != _ALL_DOWN]
    for error in causes:
        if error.code() in _DECISIVE:
            return _text(error)
    if len(causes) == len(errors):
        return None
    # every connection has failed, and librdkafka is silent about those that were closed on it
    reached = [error for error in causes if _NOT_REACHED not in error.str()]
    if not causes:
        return "the connection was closed without an answer, as by a broker of another protocol"
    return _text(reached[0]) if reached else None


def _text(error: KafkaError) -> str:
    """Return what librdkafka says, without the time that it took."""
    text: str = error.str()
    return text.partition(" (after ")[0]


class Right(NamedTuple):
    """An operation as ACLs name it, and of what."""

    operation: str
    of: Of
    name: str = ""


def needed(experiment: Experiment) -> Iterator[Right]:
    """Yield what a run on a cluster with ACLs needs."""
    names: Mapping[Of, Any] = {
        "topic": [topic.name for topic in experiment.workload.topics],
        "group": experiment.group_names,
    }
    for of, operations in NEEDED.items():
        yield from (Right(each, of, name) for each in operations for name in names[of])
    for fault in experiment.faults:
        if isinstance(fault, AddPartitions):
            yield Right("ALTER", "topic", fault.topic)
        targets = [getattr(fault, key, None) for key in ("target", "brokers")]
        if any(isinstance(target, CoordinatorOf) for target in targets):
            yield Right("DESCRIBE", "topic", OFFSETS_TOPIC)
        if "controller" in targets:
            yield Right("DESCRIBE", "cluster")


def require_rights(
    client: KafkaAdminClient, experiment: Experiment, bootstrap: str, properties: Mapping[str, str]
) -> None:
    """Raise NotAuthorizedError, which names every right of a run that is missing."""
    missing = [right for right in needed(experiment) if is_allowed(client, right) is False]
    if not missing:
        return
    prefix = str(experiment.cluster.prefix)
    operations: dict[tuple[str, ...], set[str]] = {}
    for right in missing:
        operations.setdefault(_resource(right, prefix), set()).add(right.operation)
    user = user_of(properties)
    principal = user if user in (ANONYMOUS, properties.get("sasl.username")) else "NAME"
    add = ("kafka-acls", "--bootstrap-server", bootstrap, "--add")
    refused, commands = [], []
    for resource, names in operations.items():
        of = resource[0].removeprefix("--").upper()
        refused.append(f"{of}_AUTHORIZATION_FAILED: not allowed: {', '.join(sorted(names))}")
        words = [word for name in sorted(names) for word in ("--operation", name.capitalize())]
        commands.append(
            shlex.join([*add, "--allow-principal", f"User:{principal}", *words, *resource])
        )
    raise NotAuthorizedError(
        f"{user} at {bootstrap}: {'; '.join(refused)}; allow it: {' && '.join(commands)}; then run"
        f" again with --prefix {prefix}"
    )


def require_allowed(history: Path, prefix: str) -> None:
    """Raise NotAuthorizedError if the brokers' ACLs refused something to a client.

    The names of the run begin with `prefix`.
    """
    if not history.is_file():
        return
    lines = history.read_text(errors="replace").splitlines()
    refused = [(found, json.loads(line)) for line in lines if (found := _REFUSAL.search(line))]
    if not refused:
        return
    found, event = refused[0]
    what = (found[1] or found[2]).lower()
    who, right = ("", "WRITE") if event.get("kind") == "producer" else ("member ", "READ")
    of = "topic" if what == "cluster" else what  # an idempotent producer needs it (KIP-679)
    allow = f"{right} and DESCRIBE of each {of} with the prefix '{prefix}'"
    if what == "cluster":
        allow += ", before Kafka 2.8 IDEMPOTENT_WRITE of the cluster too,"
    times = sum(1 + one.get("left_out", 0) for _, one in refused)
    raise NotAuthorizedError(
        f"{who}{event['member']}: {what.upper()}_AUTHORIZATION_FAILED: {event['error']} (the first"
        f" of {times} refusals); allow {allow} to the clients' user"
    )


def is_allowed(client: KafkaAdminClient, right: Right) -> bool | None:
    """Ask for a right; the answer is None where the brokers do not tell it. Raises KafkaError."""
    if right.of == "cluster":
        allowed = client.describe_cluster().get("authorized_operations")
        return None if allowed is None else right.operation in allowed
    request = _QUESTIONS[right.of, right.operation](right.name)
    # with ZooKeeper, the controller alone answers about CREATE and ALTER
    ask = client._send_request_to_controller  # noqa: SLF001 (the library has no call of its own)
    answer = client._manager.run(ask, request).to_dict()  # noqa: SLF001
    return _REFUSED.isdisjoint(_codes(answer))


def _resource(right: Right, prefix: str) -> tuple[str, ...]:
    """Return it in the words of `kafka-acls`."""
    if right.of == "cluster":
        return ("--cluster",)
    if right.name.startswith(prefix):
        return (f"--{right.of}", prefix, "--resource-pattern-type", "prefixed")
    return (f"--{right.of}", right.name)


def _codes(answer: Any) -> Iterator[int]:
    """Yield every error code of a response."""
    parts = answer.items() if isinstance(answer, dict) else enumerate(answer)
    for key, part in parts:
        if key == "error_code":
            yield part
        elif isinstance(part, dict | list):
            yield from _codes(part)


_CORRUPT = struct.pack(">qiibIhiqqqhii", 0, 49, -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 0)
"""An empty batch of records, whose checksum is wrong."""
_MS = 5_000
_QUESTIONS: Mapping[tuple[str, str], Callable[[str], Any]] = {
    ("topic", "CREATE"): lambda name: admin.CreateTopicsRequest(
        topics=[(name, 1, 1, [], [])], timeout_ms=_MS, validate_only=True, version=4
    ),
    ("topic", "DESCRIBE"): lambda name: metadata.MetadataRequest(
        topics=[(name,)], allow_auto_topic_creation=False, version=4
    ),
    ("topic", "READ"): lambda name: consumer.FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[(name, [(0, 0, 1)])], version=4
    ),
    ("topic", "WRITE"): lambda name: producer.ProduceRequest(
        acks=1, timeout_ms=_MS, topic_data=[(name, [(0, _CORRUPT)])], version=7
    ),
    ("topic", "DELETE"): lambda name: admin.DeleteRecordsRequest(
        topics=[(name, [(0, 0)])], timeout_ms=_MS, version=1
    ),
    ("topic", "ALTER"): lambda name: admin.CreatePartitionsRequest(
        topics=[(name, 2, None)], timeout_ms=_MS, validate_only=True, version=1
    ),
    ("group", "READ"): lambda name: consumer.HeartbeatRequest(
        group_id=name, generation_id=0, member_id="nobody", version=1
    ),
    ("group", "DESCRIBE"): lambda name: admin.DescribeGroupsRequest(groups=[name], version=1),
    ("group", "DELETE"): lambda name: consumer.OffsetDeleteRequest(
        group_id=name, topics=[], version=0
    ),
}
"""Requests by right; their versions are served from 2.4 to 4.x (KIP-896), and name topics."""
