"""Prepares a run folder for members that are programs: their command lines, and where they run."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from click import UsageError

from chaos.errors import ChaosError
from groupquake.clients.adapters import command_of
from loadtest.configs import PORTABLE, configs_in
from loadtest.members.settings import PROGRAMS, path_of
from scenarios import Experiment
from scenarios.client_properties import Properties, require_single_lines
from scenarios.clients import ADAPTERS, IN_LOAD, MECHANISMS, WITHOUT_KEY_PASSWORD, kind_of
from scenarios.setup import members_of


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


def require_there(experiment: Experiment) -> None:
    """Raise UsageError if a member's program cannot be run; only members know one with fields."""
    for member in configs_in(experiment).members:
        try:
            if member.command and "{" not in member.command[0]:
                path_of(member.command[0], str(Path.cwd()))
        except FileNotFoundError as error:
            raise UsageError(f"{member.name!r} cannot be started: {error}") from error


def outsiders(experiment: Experiment, client_ids: Callable[[str], frozenset[str]]) -> Iterator[str]:
    """Say which client.ids nobody was given, of each group of programs that can be asked now."""
    for group in experiment.workload.groups:
        given = {member.name: kind_of(member.client) for member in members_of(group)}
        with suppress(ChaosError):
            there = client_ids(group.name) if "command" in given.values() else frozenset()
            if unknown := sorted(there - given.keys())[:3]:
                missing = [name for name in given if name not in there][:3]
                yield (
                    f"group {group.name} has members with client.id {unknown}, which nobody was"
                    f" given, and lacks {missing}; a program has to use GROUPQUAKE_CLIENT_ID"
                )


def require_able(experiment: Experiment, properties: Properties) -> None:
    """Raise UsageError if a client of the experiment cannot do what a secured cluster asks for.

    `properties` are those that members get: at a tap without TLS. Raises PropertiesError for a
    value that cannot be handed to a program.
    """
    used = {kind_of(member.client) for member in experiment.members()}
    if used - set(PORTABLE):
        require_single_lines(properties)
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
