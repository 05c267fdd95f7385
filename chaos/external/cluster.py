"""A cluster of the user's: nothing of it is started, stopped or changed but by declared hooks."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.clusters import GROUP_LOG, BrokerInfo, Cluster, CutShort
from chaos.errors import ClusterError
from chaos.external.hooks import LOG, command_of, hooks_of, run, undo_of
from chaos.external.log_collection import collect
from scenarios.external import Hooks, Logs, Verb


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
        """Return the hook that starts or resumes a broker."""
        folder = self._folder / str(broker_id)
        hook = undo_of(self._target.hooks, broker_id, verb, folder)
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

    def act(self, verb: Verb, broker_id: int) -> None:
        """Run the hook of that name."""
        command = command_of(self._target.hooks, broker_id, verb)
        if command is None:
            raise ClusterError(f"broker {broker_id} has no hook {verb}; add it to cluster.hooks")
        timeout_ms = hooks_of(self._target.hooks, broker_id).timeout_ms
        run(broker_id, verb, command, timeout_ms, self._folder / str(broker_id) / LOG)
