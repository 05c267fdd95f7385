"""What the user of a cluster is allowed, asked before anything is made there.

Brokers look at ACLs before they look for what a request names. So each right is asked for with a
request about a name that is not there: the answer is AUTHORIZATION_FAILED, or that there is no such
topic, or that another broker coordinates the group. If the name were there, none would change it:
records are deleted up to offset 0, offsets of no topic, the heartbeat is nobody's, and brokers
refuse a batch with a wrong checksum (CORRUPT_MESSAGE). Tried on 2.4.1, 3.9.1 and 4.3.0 with each
right taken away in turn; nothing was made, not even `__consumer_offsets`. What does not tell it:

- operations that brokers list (KIP-430): from 4.0 on not of a group that is not there
- DeleteTopics: with KRaft it is UNKNOWN_TOPIC_OR_PARTITION with the right and without it
- Produce without a batch: 2.4.1 closes the connection
"""

import shlex
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from kafka.admin import KafkaAdminClient
from kafka.protocol import admin, consumer, metadata, producer

from groupquake.exits import NotAuthorizedError
from kafka_protocol.errors import BrokerError
from kafka_protocol.offsets_topic import OFFSETS_TOPIC
from scenarios import Experiment
from scenarios.client_properties import ANONYMOUS, user_of
from scenarios.faults.topic import AddPartitions
from scenarios.targets import CoordinatorOf

Of = Literal["topic", "group", "cluster"]
NEEDED: Mapping[Of, tuple[str, ...]] = {
    "topic": ("CREATE", "DESCRIBE", "READ", "WRITE", "DELETE"),
    "group": ("READ", "DESCRIBE", "DELETE"),
}
"""What every run does with its topics and groups, as ACLs name it."""
_REFUSED = {BrokerError.TOPIC_AUTHORIZATION_FAILED, BrokerError.GROUP_AUTHORIZATION_FAILED}


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


def require(
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
