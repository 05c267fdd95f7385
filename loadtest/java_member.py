"""A group member with Kafka's Java client: the VerifiableConsumer of Kafka's tools.

The VerifiableConsumer is a process that prints its events as JSON lines. They are kept in
`members/<name>.log` next to the history, and become the member's events. SIGTERM closes it cleanly.
"""

import json
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import gevent
from gevent import subprocess

from loadtest.base_member import BaseMember, State, names
from loadtest.dies_with_parent import dying_with_parent
from loadtest.errors import LoadtestError
from loadtest.settings import JAVA_COMMAND, java_options, java_properties

CLOSE_S = 15.0


class JavaMember(BaseMember):
    """A member with the Java client in a process of its own; its member id is unknown.

    It has the interface of `Member`; one greenlet at a time uses it. Its name is its client.id, by
    which the brokers' logs identify it.
    """

    _process: subprocess.Popen[bytes] | None = None
    _began = 0.0

    @property
    def is_up(self) -> bool:
        """Whether its process is known to run."""
        return self._process is not None

    def open(self) -> None:
        """Start its process, if there is none. Raises LoadtestError if it cannot be started."""
        if self._process is not None:
            return
        if self._history.path is None:
            raise LoadtestError("a Java member needs --history: its command line is in that folder")
        folder = self._history.path.parent
        try:
            command = self._command(folder)
            log = (folder / "members" / f"{self.config.name}.log").open("ab")
            self._process = subprocess.Popen(
                [*dying_with_parent(signal.SIGKILL, command[0]), *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # the runner handles Ctrl-C
            )
        except (OSError, ValueError) as error:
            raise LoadtestError(f"{self.config.name!r} cannot be started: {error}") from error
        self.state, self._began = "starting", time.perf_counter()
        self._write_event("created", instance_id=self.config.instance_id)
        self._reader = gevent.spawn(self._read, self._process.stdout, log)

    def _command(self, folder: Path) -> list[str]:
        """Write its properties file, and return the command line."""
        (folder / "members").mkdir(exist_ok=True)
        properties = folder / "members" / f"{self.config.name}.properties"
        properties.write_text(java_properties(self.config))
        command: list[str] = json.loads((folder / JAVA_COMMAND).read_text())
        return [*command, *java_options(self.config, self._bootstrap, properties)]

    def _read(self, lines: IO[bytes], log: IO[bytes]) -> None:
        with lines, log:
            for line in lines:
                log.write(line)
                log.flush()
                with suppress(ValueError):  # lines of the JVM itself
                    self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        partitions = {(one["topic"], one["partition"]) for one in line.get("partitions", ())}
        match line.get("name"):
            case "partitions_assigned":
                self._partitions |= partitions
                self.joins += 1
                self.state = "joined"
                self._write_event("assigned", partitions=names(partitions))
                if self._began:
                    self._report("join", (time.perf_counter() - self._began) * 1000)
                    self._began = 0.0
            case "partitions_revoked":
                self._partitions -= partitions
                self._write_event("revoked", partitions=names(partitions))

    def poll_once(self) -> None:
        """Handle the end of its process, as when it is fenced."""
        if self._process is None or (code := self._process.poll()) is None:
            return
        self._write_event("error", error=f"its process has ended by itself, exit code {code}")
        self._report("error", None, error=f"exit code {code}")
        self._end("killed", "failed")

    def close(self) -> None:
        """Close it cleanly, if it is up: a dynamic member leaves, a static one does not."""
        if self._process is None:
            self.state = "stopped"
            return
        self._write_event("closing")
        began = time.perf_counter()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_S)
        self._end("closed", "stopped", took_ms=round((time.perf_counter() - began) * 1000, 1))

    def kill(self) -> None:
        """Kill its process. Raises LoadtestError if it is not up."""
        if self._process is None:
            raise LoadtestError(
                f"{self.config.name!r} is {self.state} and has no process to kill; start it first"
            )
        self._end("killed", "killed")

    def _end(self, event: str, state: State, **more: Any) -> None:
        """Kill the process if it still runs, and write the event with the partitions it owned."""
        assert self._process is not None, "callers check"
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process = None
        self.state = state
        self._write_event(event, partitions=self._disown(), **more)
