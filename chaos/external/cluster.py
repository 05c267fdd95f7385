"""A cluster of the user's: nothing of it is started, stopped or changed but by declared hooks.

Hooks are shell commands of the user's that break a broker, and undo that.
"""

import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.clusters import GROUP_LOG, BrokerInfo, Cluster, CutShort, commands
from chaos.errors import ChaosError, ClusterError
from chaos.external.log_collection import collect
from scenarios.external import BROKER, Hooks, Logs, Verb

LOG = "hooks.log"
"""What hooks printed, in the folder of their broker."""
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Target:
    """What is known of an external cluster before a run.

    `brokers` are host and port that clients use, by broker id. `logs` is where the brokers' logs
    are, if they can be read. `client_properties_file` names a file; what it says is in
    `client_properties`, which may hold secrets and appears nowhere.
    """

    cluster_id: str
    bootstrap: str
    brokers: Mapping[int, tuple[str, int]]
    logs: Logs | None
    hooks: Mapping[str, Hooks] = field(default_factory=dict)
    client_properties_file: Path | None = None
    client_properties: Mapping[str, str] = field(default_factory=dict, repr=False)


class ExternalCluster(Cluster):
    """A `Cluster` that exists; `start` begins to collect its logs, `stop` ends that.

    Its brokers are those that it had when it was asked. `folder` gets a folder for each, with what
    is collected of its log.
    """

    kind = "external"

    def __init__(self, target: Target, folder: Path) -> None:
        self._target = target
        self._folder = folder
        self._collecting = ExitStack()
        self.bootstrap = target.bootstrap
        self.client_properties = target.client_properties
        self.logs_shutdowns = target.logs is not None
        self.brokers = tuple(
            BrokerInfo(
                node,
                port,
                folder / str(node) / GROUP_LOG,
                folder / str(node) / "server.log",
                host,
                target.client_properties,
            )
            for node, (host, port) in sorted(target.brokers.items())
        )

    def undo(self, verb: Verb, broker_id: int) -> Mapping[str, Any]:
        """Return the hook that starts or resumes a broker, as `run_again` takes it."""
        hook = {
            "verb": verb,
            "command": command_of(self._target.hooks, broker_id, verb),
            "timeout_ms": hooks_of(self._target.hooks, broker_id).timeout_ms,
            "log": str((self._folder / str(broker_id)).resolve() / LOG),
        }
        return {**super().undo(verb, broker_id), "hook": hook}

    def start(self) -> None:
        """Begin to collect the logs. Raises ClusterError if one is not there."""
        if self._target.logs is not None:
            for info in self.brokers:
                source = collect(self._target.logs, info.id, self._folder / str(info.id))
                self._collecting.callback(source.end)

    def stop(self) -> tuple[CutShort, ...]:
        """Collect what is still written, and end that; the brokers run on.

        Returns all whose logs are collected: none of them is shut down.
        """
        self._collecting.close()
        if self._target.logs is None:
            return ()
        return tuple(
            CutShort(info.id, info.group_log.stat().st_size)
            for info in self.brokers
            if info.group_log.exists()
        )

    def end_logs(self) -> tuple[CutShort, ...]:
        """Collect what is still written, as `stop` does."""
        return self.stop()

    def act(self, verb: Verb, broker_id: int) -> None:
        """Run the hook of that name."""
        command = command_of(self._target.hooks, broker_id, verb)
        if command is None:
            raise ClusterError(f"broker {broker_id} has no hook {verb}; add it to cluster.hooks")
        timeout_ms = hooks_of(self._target.hooks, broker_id).timeout_ms
        run(broker_id, verb, command, timeout_ms, self._folder / str(broker_id) / LOG)


def hooks_of(hooks: Mapping[str, Hooks], broker: int) -> Hooks:
    """Return the commands for a broker: its own, or those for any."""
    return hooks.get(str(broker)) or hooks.get("any") or Hooks()


def command_of(hooks: Mapping[str, Hooks], broker: int, verb: Verb) -> str | None:
    """Return the command of a verb for a broker, if there is one."""
    command = hooks_of(hooks, broker).of(verb)
    return None if command is None else command.replace(BROKER, str(broker))


def run(broker: int, verb: str, command: str, timeout_ms: int, log: Path) -> None:
    """Run a command with a shell; what it prints is appended to `log`, of a broker's folder.

    It is done when its shell has ended: what it left in the background goes on. Raises ClusterError
    if it does not end in time, which kills it and what it started, or if its exit code is not 0.
    """
    what = f"broker {broker}: the hook {verb}"
    brokers = log.parent.parent
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab", buffering=0) as printed:
            printed.write(f"{verb}: {command}\n".encode())
    except OSError:  # a broker is healed all the same when the disk is full
        log = Path(os.devnull)
    with log.open("a+b", buffering=0) as printed:
        began = printed.tell()
        process = commands.start(command, brokers, printed, subprocess.STDOUT)
        try:
            code = process.wait(timeout_ms / 1000)
        except subprocess.TimeoutExpired:
            commands.kill(process)
            process.wait()
            printed.write(f"{verb}: killed\n".encode())
            raise ClusterError(
                f"{what} did not end within {timeout_ms / 1000:g} s; raise its timeout, or mend it"
            ) from None
        printed.seek(began)
        lines = printed.read().decode(errors="replace").strip().splitlines()
        printed.write(f"{verb}: exit code {code}\n".encode())
    if code != 0:
        last = lines[-1][:_SHOWN] if lines else "it printed nothing"
        raise ClusterError(f"{what} failed with code {code}: {last}")


def run_again(broker: int, hook: Mapping[str, Any]) -> str:
    """Carry out an undo of the journal, and return how. Raises ChaosError if it fails."""
    match hook:
        case {
            "verb": str(verb),
            "command": str(command),
            "timeout_ms": int(timeout_ms),
            "log": str(log),
        }:
            pass
        case _:
            raise ChaosError(f"broker {broker}: {dict(hook)} is no hook; the journal was altered")
    try:
        run(broker, verb, command, timeout_ms, Path(log))
    except ClusterError as error:
        raise ChaosError(str(error)) from error
    except OSError as error:
        raise ChaosError(f"broker {broker}: {log}: {error.strerror}; mend that") from error
    return f"broker {broker}: the hook {verb} was run"
