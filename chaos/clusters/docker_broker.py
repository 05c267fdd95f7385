"""One broker as a container: testcontainers starts it, the Docker SDK breaks it."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docker.errors import NotFound
from docker.models.containers import Container

from chaos.clusters.docker_engine import engine_errors
from chaos.clusters.interface import BrokerInfo
from chaos.clusters.local_broker import LocalBroker, Words

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

_POLL_S = 0.05


class ContainerBroker(LocalBroker):
    """A broker in `container`, which is created at the first launch and started again later."""

    def __init__(self, info: BrokerInfo, folder: Path, words: Words) -> None:
        super().__init__(info, folder, words)
        self.container: DockerContainer | None = None
        self._created: Container | None = None

    @property
    def runs(self) -> bool:
        """Whether the container runs, paused or not."""
        return bool(self._state()["Running"])

    @property
    def exit_status(self) -> int | None:
        """The exit status of the JVM, 137 after SIGKILL; None while it runs."""
        state = self._state()
        return None if state["Running"] else int(state["ExitCode"])

    @property
    def process_id(self) -> int | None:
        """The process id that the engine last reported; None if the container does not run."""
        state = {} if self._created is None else self._created.attrs.get("State", {})
        return state.get("Pid") or None

    @property
    def address(self) -> str:
        """Its address on the network of the brokers. Raises ClusterError if it does not run."""
        networks = self._running().attrs["NetworkSettings"]["Networks"].values()
        return str(next(iter(networks))["IPAddress"])

    def execute(self, *command: str) -> tuple[int, str]:
        """Run a command as root in the container; return exit code and output.

        Raises ClusterError if the container does not run, or is paused.
        """
        container = self._running()
        with engine_errors():
            done = container.exec_run(list(command), user="root")
        assert isinstance(done.output, bytes), "it is not streamed"
        return done.exit_code or 0, done.output.decode(errors="replace")

    def kill(self) -> None:
        """SIGKILL; the engine thaws a paused container for it."""
        container = self._running()
        with engine_errors():
            container.kill()

    def terminate(self) -> None:
        """Unpause, then SIGTERM."""
        container = self._running()
        with engine_errors():
            if container.status == "paused":
                container.unpause()
            container.kill("SIGTERM")

    def pause(self) -> None:
        """Freeze all processes of the container."""
        container = self._running()
        with engine_errors():
            container.pause()

    def resume(self) -> None:
        """Unpause, if it is paused."""
        container = self._running()
        if container.status == "paused":
            with engine_errors():
                container.unpause()

    def ended_within(self, timeout_s: float) -> bool:
        """Ask the engine until the container has exited."""
        deadline = time.monotonic() + timeout_s
        while self.runs:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def forget(self) -> None:
        """Drop the container, once it was removed."""
        if self.container is not None:
            self.container.get_docker_client().client.close()
        self.container = self._created = None

    def _launch(self) -> None:
        with engine_errors():
            if self._created is not None:
                self._created.start()
            elif self.container is not None:
                self._created = self.container.start().get_wrapped_container()

    def _running(self) -> Container:
        if self._created is None or not self.runs:
            raise self._not_running()
        return self._created

    def _state(self) -> Mapping[str, Any]:
        """Return the state of the container from the engine."""
        if self._created is None:
            return {"Running": False, "ExitCode": 0}
        with engine_errors():
            try:
                self._created.reload()
            except NotFound:
                return {"Running": False, "ExitCode": 137}  # removed: by hand, or by `heal`
        state: Mapping[str, Any] = self._created.attrs["State"]
        return state
