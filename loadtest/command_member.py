"""A group member that is a program, of any client: an adapter of `clients/`, or a user's own.

It gets what to join from its environment and its command line (`scenarios.clients.FIELDS`). What
it prints is kept in `members/<name>.log` next to the history. Where that is the JSON lines of
Kafka's VerifiableConsumer, they become the member's events. Signals hit its whole process group, as
a program may be started by a shell.
"""

import json
import os
import signal
import time
from contextlib import ExitStack, suppress
from math import inf
from pathlib import Path
from typing import IO, Any

import gevent
from gevent import subprocess

from loadtest.base_member import names
from loadtest.client_errors import QUIET_MS
from loadtest.dies_with_parent import dying_with_parent
from loadtest.errors import LoadtestError
from loadtest.history import now_ms
from loadtest.process_member import ProcessMember
from loadtest.security import client_properties, java_security
from loadtest.settings import PROGRAMS, RUN_FOLDER, java_properties, path_of, program_settings
from scenarios.client_properties import TLS_ENDS_AT_TAP, PropertiesError
from scenarios.clients import filled, variables
from scenarios.regular_files import open_regular

PACKAGES = str(Path(__file__).parents[1])
"""The folder of our packages."""
STANDARD_INPUT = Path("/dev/stdin")
"""Where a program reads its properties if these hold secrets."""
_LAST_LINES, _LINE_LENGTH, _LAST_BYTES = 5, 200, 4_096
"""How much of what a program printed last is quoted at its end."""


class CommandMember(ProcessMember):
    """A member that is a program; its member id is unknown.

    Its name is its client.id, by which the brokers' logs identify it.
    """

    _began = _began_ms = 0.0
    _errors_ms: dict[str, float]
    """When each error was written last."""

    def open(self) -> None:
        """Start its process, if there is none. Raises LoadtestError if it cannot be started."""
        if self._process is not None:
            return
        if self._history.path is None:
            raise LoadtestError(
                f"{self.config.name!r} is a program and needs --history: its output goes to the"
                " folder of that"
            )
        folder, began_ms = self._history.path.parent, now_ms()
        try:
            (folder / "members").mkdir(exist_ok=True)
            log = (folder / "members" / f"{self.config.name}.log").open("ab")
            with ExitStack() as unless_started:
                unless_started.enter_context(log)
                self._log, self._log_began = Path(log.name), log.tell()
                self._process = self._started(folder, log)
                unless_started.pop_all()
        except (OSError, ValueError, LookupError, PropertiesError) as error:
            raise LoadtestError(f"{self.config.name!r} cannot be started: {error}") from error
        self.state, self._began = "starting", time.perf_counter()
        self._began_ms, self._ended_ms, self._errors_ms = began_ms, inf, {}
        self._write_event("created", at_ms=self._began_ms, instance_id=self.config.instance_id)
        self._reader = gevent.spawn(self._read, self._process.stdout, log)

    def _started(self, folder: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start its process, in the folder from which groupquake was started."""
        programs = json.loads((folder / PROGRAMS).read_text())
        properties = folder / "members" / f"{self.config.name}.properties"
        properties.write_text(java_properties(self.config, self._bootstrap))
        secured = client_properties()
        values = program_settings(
            self.config, self._bootstrap, STANDARD_INPUT if secured else properties
        )
        template = self.config.command or programs["commands"][self.config.client]
        program, *arguments = filled(tuple(template), values)
        program = path_of(program, programs["folder"])
        process = subprocess.Popen(
            [*dying_with_parent(signal.SIGKILL, program), *arguments],
            cwd=programs["folder"],
            env={
                **users_environment(),
                **dict(variables(values)),
                RUN_FOLDER: str(folder.resolve()),
            },
            stdin=subprocess.PIPE if secured else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # the runner handles Ctrl-C
        )
        if secured:
            with suppress(BrokenPipeError), process.stdin as secret:
                secret.write(f"{properties.read_text()}{java_security(secured)}".encode())
        return process

    def _last_words(self) -> str:
        last: list[str] = []
        with suppress(OSError), open_regular(self._log) as log:
            log.seek(max(self._log_began, log.seek(0, os.SEEK_END) - _LAST_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
            # its events are in the history; they come here later than what it prints as it ends
            words = [line for line in lines if line.strip() and not line.startswith("{")]
            last = [repr(line[:_LINE_LENGTH]) for line in words[-_LAST_LINES:]]
        return f"last in members/{self._log.name}: {' | '.join(last) or 'nothing'}"

    def _read(self, lines: IO[bytes], log: IO[bytes]) -> None:
        with lines, log:
            for line in self._unless_held(lines):
                log.write(line)
                log.flush()
                with suppress(ValueError, TypeError, LookupError, AttributeError):  # other output
                    self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        match line.get("name"):
            case "partitions_assigned":
                partitions = _partitions(line)
                self._partitions |= partitions
                self.joins += 1
                self.state = "joined"
                self._write_event("assigned", at_ms=self._at_ms(line), partitions=names(partitions))
                if self._began:
                    self._report("join", (time.perf_counter() - self._began) * 1000)
                    self._began = 0.0
            case "partitions_revoked" | "partitions_lost" as name:
                partitions = _partitions(line)
                self._partitions -= partitions
                event = name.removeprefix("partitions_")
                self._write_event(event, at_ms=self._at_ms(line), partitions=names(partitions))
            case "offsets_committed" if line["success"]:
                count = len(line["offsets"])
                self._write_event("committed", at_ms=self._at_ms(line), offsets=count)
            case "offsets_committed":
                self._add_error(f"commit: {line.get('error')}", self._at_ms(line))
            case "error":
                self._add_error(str(line["error"]), self._at_ms(line))

    def _add_error(self, error: str, at_ms: float) -> None:
        """Write an error, unless the same was written less than a second ago."""
        if at_ms - self._errors_ms.get(error, -inf) >= QUIET_MS:
            self._write_event("error", at_ms=at_ms, error=error)
            self._errors_ms[error] = at_ms

    def _at_ms(self, line: dict[str, Any]) -> float:
        """Return when the program wrote a line: it says so, and is read a little later."""
        until_ms, said_ms = min(now_ms(), self._ended_ms), line.get("timestamp")
        if isinstance(said_ms, int | float) and self._began_ms <= said_ms <= until_ms:
            return float(said_ms)
        return until_ms


def users_environment() -> dict[str, str]:
    """Return the environment without our packages, which may not be those of a program.

    The runner puts their folder first on PYTHONPATH, for the load.
    """
    found = {name: value for name, value in os.environ.items() if name != TLS_ENDS_AT_TAP}
    first, _, others = found.get("PYTHONPATH", "").partition(os.pathsep)
    if first == PACKAGES:
        found["PYTHONPATH"] = others
    if not found.get("PYTHONPATH"):
        found.pop("PYTHONPATH", None)
    return found


def _partitions(line: dict[str, Any]) -> set[tuple[str, int]]:
    return {(one["topic"], int(one["partition"])) for one in line["partitions"]}
