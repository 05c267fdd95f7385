"""Prepares a run folder for members that are programs: their command lines, and where they run."""

import json
from collections.abc import Callable
from pathlib import Path

from click import UsageError

from groupquake.clients.adapters import command_of
from loadtest.settings import PROGRAMS
from scenarios import Experiment
from scenarios.client_properties import Properties, written
from scenarios.clients import ADAPTERS, IN_LOAD, MECHANISMS, WITHOUT_KEY_PASSWORD, kind_of

_OURS = {"librdkafka-process", *IN_LOAD}
"""The clients that are no programs of others."""


def prepare(
    folder: Path, experiment: Experiment, kafka_home: Path | None, progress: Callable[[str], None]
) -> None:
    """Write the command lines of adapters into a run folder, if members are programs.

    Members run in the folder from which groupquake was started. Raises AdapterError, and
    ClusterError for want of Java or of Kafka's tools.
    """
    used = {kind_of(member.client) for member in experiment.members()}
    if used <= set(IN_LOAD):
        return
    version = experiment.cluster.version
    commands = {
        name: command_of(name, version, kafka_home, progress) for name in ADAPTERS if name in used
    }
    content = {"folder": str(Path.cwd()), "commands": commands}
    (folder / PROGRAMS).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def require_able(experiment: Experiment, properties: Properties) -> None:
    """Raise UsageError if a client of the experiment cannot do what a secured cluster asks for.

    `properties` are those that members get: at a tap without TLS. Raises PropertiesError for a
    value that cannot be handed to a program.
    """
    used = {kind_of(member.client) for member in experiment.members()}
    if used - _OURS:
        written(properties)
    mechanism = properties.get("sasl.mechanism")
    for name in sorted(used):
        able = MECHANISMS.get(name)
        if mechanism is not None and able is not None and mechanism not in able:
            raise UsageError(
                f"client {name} has no sasl.mechanism {mechanism}, only {', '.join(able)};"
                " choose one of these, or another client"
            )
        if name in WITHOUT_KEY_PASSWORD and "ssl.key.password" in properties:
            raise UsageError(
                f"client {name} reads no encrypted key (ssl.key.password); give a key without a"
                " password, or choose another client"
            )
