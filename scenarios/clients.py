"""Which client a member is: librdkafka, an adapter of ours, or a program of the user's.

A program gets what to join from its environment and from fields in its command line, which are the
same: `{bootstrap}` in a word is what `GROUPQUAKE_BOOTSTRAP` says.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag

from scenarios.fields import Part, SomeItems
from scenarios.problems import NO_KEY, nearest

Library = Literal[
    "librdkafka",
    "librdkafka-process",
    "wire",
    "java",
    "confluent-kafka",
    "aiokafka",
    "kafka-python",
    "franz-go",
    "sarama",
    "kafkajs",
]
"""The client libraries that groupquake has members of."""
ADAPTERS: tuple[Library, ...] = get_args(Library)[3:]
"""Those whose members are programs, in `clients/`; `java` is Kafka's own program."""
IN_LOAD: tuple[Library, ...] = ("librdkafka", "wire")
"""Those whose members share the process of the load."""
WITHOUT_STATIC = ("kafkajs",)
"""Those that have no static members (KIP-345)."""
OF_KAFKA = ("range", "roundrobin", "cooperative-sticky")
"""The assignors that most clients have."""
ASSIGNORS: Mapping[str, tuple[str, ...]] = {
    "wire": (*OF_KAFKA, "instance-first"),
    "aiokafka": ("range", "roundrobin"),
    "kafka-python": ("range", "roundrobin"),
    "sarama": ("range", "roundrobin"),
    "kafkajs": ("roundrobin",),
}
"""The assignors of those that have others."""
_WITHOUT_OAUTH = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Mapping[str, tuple[str, ...]] = {
    "wire": _WITHOUT_OAUTH,
    "aiokafka": _WITHOUT_OAUTH,
    "kafka-python": _WITHOUT_OAUTH,
    "franz-go": _WITHOUT_OAUTH,
    "sarama": ("PLAIN",),
    "kafkajs": _WITHOUT_OAUTH,
}
"""The SASL mechanisms of those that do not have all."""
WITHOUT_KEY_PASSWORD = ("franz-go", "sarama")
"""Those that read no encrypted key of a client certificate: Go's crypto/tls does not."""

FIELDS: Mapping[str, str] = {
    "bootstrap": "bootstrap servers, comma-separated",
    "group": "group.id",
    "client_id": "client.id: the member's name, by which the brokers' logs identify it",
    "instance_id": "group.instance.id (KIP-345) of a static member; empty for a dynamic one",
    "protocol": "group protocol: `classic`",
    "topic": "first topic to read",
    "topics": "all topics to read, comma-separated",
    "assignor": "partition assignor: `range`, `roundrobin` or `cooperative-sticky`",
    "session_timeout_ms": "session timeout, ms",
    "heartbeat_interval_ms": "heartbeat interval, ms",
    "max_poll_interval_ms": "longest time between two polls, ms; also the rebalance timeout",
    "commit_interval_ms": "time between two commits, ms",
    "metadata_max_age_ms": "age from which metadata is asked for again, ms",
    "properties": "a file of all this as properties of Kafka's Java client",
    "java_assignor": "the assignor as a class of Kafka's Java client",
    "client_properties": "on a secured cluster a file of client properties, in librdkafka's words,"
    " its secrets read; empty on others",
}
"""What a program gets to know, by the name of the field."""
VARIABLES = {name: f"GROUPQUAKE_{name.upper()}" for name in FIELDS}
"""The environment variable of each field."""
_FIELD = re.compile(r"\{([a-z_]+)\}")


def filled(words: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """Return a command line with its fields replaced; other braces stay as they are."""
    return [_FIELD.sub(lambda field: values.get(field[1], field[0]), word) for word in words]


def _with_known_fields(words: tuple[str, ...]) -> tuple[str, ...]:
    unknown = (name for word in words for name in _FIELD.findall(word) if name not in FIELDS)
    if (name := next(unknown, None)) is not None:
        raise ValueError(f"there is no field {{{name}}}; {nearest(name, FIELDS)}")
    return words


class Command(Part):
    """A member that is your own program, in any language.

    It runs in the folder from which groupquake was started. SIGTERM stops it cleanly, SIGKILL
    crashes it, SIGSTOP and SIGCONT pause it; each hits its whole process group. What it prints is
    kept in `members/`. Where that is the JSON lines of Kafka's VerifiableConsumer, its assignments,
    revocations and commits become the member's history.
    """

    command: Annotated[
        SomeItems[Annotated[str, Field(min_length=1)]],
        AfterValidator(_with_known_fields),
    ]
    """The program and its arguments. Fields in braces are replaced, such as `{bootstrap}`."""


def _form(value: Any) -> str:
    return "Command" if isinstance(value, dict | Command) else NO_KEY


Client = Annotated[
    Annotated[Library, Tag(NO_KEY)] | Annotated[Command, Tag("Command")], Discriminator(_form)
]


def kind_of(client: Client) -> str:
    """Return the name of a client; `command` for a program of the user's."""
    return "command" if isinstance(client, Command) else client


def variables(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the environment of a program."""
    return ((VARIABLES[name], value) for name, value in values.items())
