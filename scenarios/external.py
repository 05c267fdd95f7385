"""What a file says of a cluster that exists already: `cluster: {kind: external, …}`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from scenarios.durations import PositiveMs
from scenarios.fields import MOST_ITEMS, Part

Text = Annotated[str, StringConstraints(min_length=1)]
_PREFIX = "[A-Za-z0-9][A-Za-z0-9._-]{0,79}"
Prefix = Annotated[str, StringConstraints(pattern=f"^{_PREFIX}$")]
Verb = Literal["kill", "stop", "start", "pause", "resume"]
UNDO: Mapping[Verb, Verb] = {"kill": "start", "stop": "start", "pause": "resume"}
"""What undoes what."""
BROKER = "{broker}"
"""Stands for the id of a broker in folders and commands."""


class Logs(Part):
    """Where the brokers' logs are: in a folder, or what a command prints; give one of them.

    `{broker}` stands for the id of a broker.
    """

    folder: Text | None = None
    """A folder of this machine that holds a broker's `group.log`; stock logs are not read. Without
    `{broker}` each broker has a folder there, called by its id."""
    command: Text | None = None
    """A shell command that prints a broker's log and goes on as it grows, such as
    `kubectl logs -f --since=1m kafka-{broker}`. It is started when the run starts."""


class Hooks(Part):
    """Shell commands that break one broker, and those that undo it; `{broker}` is its id.

    A fault needs the command of its name, and the one that undoes it: `start` undoes `kill` and
    `stop`, `resume` undoes `pause`. A command has done its work when it ends with exit code 0.
    """

    kill: Text | None = None
    stop: Text | None = None
    start: Text | None = None
    pause: Text | None = None
    resume: Text | None = None
    timeout_ms: PositiveMs = 60_000
    """How long a command may take."""

    def of(self, verb: Verb) -> str | None:
        """Return the command of a verb, if there is one."""
        command: str | None = getattr(self, verb)
        return command


LogSource = Logs | Literal["tap", "none"]
HooksByBroker = Annotated[
    Mapping[str, Hooks],
    Field(max_length=MOST_ITEMS, json_schema_extra={"additionalProperties": False}),
]
KEYS = ("bootstrap", "client_properties", "logs", "prefix", "hooks", "broker_ids")
"""The keys of a cluster that only apply to an external one."""
