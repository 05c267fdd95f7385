"""A client that is a program: `librdkafka-process`, an adapter of `clients/`, or a user's own.

It gets what to join from its environment and its command line (`scenarios.clients.FIELDS`). The
JSON lines of Kafka's VerifiableConsumer that it prints become the member's events. It leads a
session of its own, so that a signal reaches all of it, a shell included.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

import gevent
from gevent import subprocess
from gevent.os import make_nonblocking, nb_read

import loadtest
from loadtest.dies_with_parent import dying_with_parent
from loadtest.errors import LoadtestError
from loadtest.history import now_ms
from loadtest.members.member import Client, Member
from loadtest.members.security import client_properties, java_security
from loadtest.members.settings import (
    PROGRAMS,
    RUN_FOLDER,
    java_properties,
    path_of,
    program_settings,
)
from loadtest.timing import FREEZE_S, LOOK_EVERY_S, PROGRAM_CLOSE_S
from scenarios.client_properties import TLS_ENDS_AT_TAP, PropertiesError
from scenarios.clients import filled, variables
from scenarios.regular_files import open_regular

PACKAGES = Path(loadtest.__file__).parents[1]
"""The folder of our packages."""
OWN_CLIENT = "librdkafka-process"
"""The client that needs nothing but groupquake itself: an adapter, run by our own Python."""
_ADAPTERS = PACKAGES / "clients"
STANDARD_INPUT = "/dev/stdin"
"""Where a program reads its properties if these hold secrets."""
DEAD = frozenset("ZXx")
"""The states of threads that have ended (proc_pid_stat(5))."""
STOPPED = DEAD | frozenset("Tt")
"""Those of threads that have ended, or do not run until they get SIGCONT."""
_CRASHES = (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT)
"""The exit codes of a process that does not close, whichever program it is."""
_LAST_LINES, _LINE_LENGTH, _LAST_BYTES = 5, 200, 4_096
"""How much of what a program printed last is quoted at its end."""
_CHUNK = 1 << 16
"""Bytes read at once: what a pipe holds."""
_FILLER = b"\0"
"""What fills the pipe of a program that is to poll no more; it is taken out again."""


class ProgramClient(Client):
    """A process with its output. Raises LoadtestError if it cannot be started.

    Its name is its client.id, by which the brokers' logs identify it. What it prints is kept in
    `members/<name>.log` next to the history; our own program prints nothing else than its events.
    """

    def __init__(self, member: Member, bootstrap: str) -> None:
        self._member = member
        self._log: IO[bytes] | None = None
        self._fenced = False
        self._says_records = False
        self._begun = b""
        self._began_ms = now_ms()
        try:
            with ExitStack() as unless_started:
                self._process = self._started(bootstrap, unless_started)
                unless_started.pop_all()
        except (OSError, ValueError, LookupError, PropertiesError) as error:
            raise LoadtestError(f"{member.name!r} cannot be started: {error}") from error
        self.pid = int(self._process.pid)
        self._reader = gevent.spawn(self._read)

    def _started(self, bootstrap: str, unless_started: ExitStack) -> subprocess.Popen[bytes]:
        """Start its process, in the folder from which groupquake was started."""
        config = self._member.config
        secured, own = client_properties(), config.client == OWN_CLIENT
        environment = users_environment()
        properties = ""
        if own:
            folder = None
            template: tuple[str, ...] = (
                sys.executable,
                str(_ADAPTERS / "confluent-kafka/member.py"),
            )
            theirs = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_ADAPTERS), theirs)))
        else:
            programs, members = self._run_folder()
            environment[RUN_FOLDER] = str(members.parent.resolve())
            folder = programs["folder"]
            template = config.command or tuple(programs["commands"][config.client])
            properties = str(members / f"{config.name}.properties")
            Path(properties).write_text(java_properties(config, bootstrap))
            self._log = unless_started.enter_context((members / f"{config.name}.log").open("ab"))
            self._log_began = self._log.tell()
        to_java = secured and not own
        values = program_settings(config, bootstrap, STANDARD_INPUT if to_java else properties)
        program, *arguments = filled(template, values)
        if folder is not None:
            program = path_of(program, folder)
        self._output, output = os.pipe()
        unless_started.callback(os.close, self._output)
        make_nonblocking(self._output)
        try:
            process = subprocess.Popen(
                [*dying_with_parent(signal.SIGKILL, program), *arguments],
                cwd=folder,
                env={**environment, **dict(variables(values))},
                stdin=subprocess.PIPE if to_java else subprocess.DEVNULL,
                stdout=output,
                stderr=self._log,
                start_new_session=True,  # the load handles Ctrl-C, and ends this process too
            )
        finally:
            os.close(output)
        if to_java:
            with suppress(BrokenPipeError), process.stdin as secret:
                lines = Path(properties).read_text() + java_security(secured)
                secret.write(lines.encode())
        return process

    def _run_folder(self) -> tuple[dict[str, Any], Path]:
        """Return what its run says of programs, and the folder of their output."""
        if (history := self._member.history.path) is None:
            raise ValueError("a program needs --history: its output goes to the folder of that")
        programs = json.loads(history.with_name(PROGRAMS).read_text())
        members = history.with_name("members")
        members.mkdir(exist_ok=True)
        return programs, members

    def poll_once(self) -> None:
        """Handle the end of its process, as when it is fenced."""
        code = self._process.poll()
        if code is None and not self._fenced:
            return
        self.kill()
        if self._fenced:
            self._member.over(self, "fenced")
            return
        self._member.over(self, "failed")
        why = f"its process has ended by itself, exit code {code}; {self._last_words()}"
        self._member.fail(why, at_ms=self.ended_ms, exit_code=code)

    def close(self) -> None:
        """Send SIGTERM, and kill what of it still runs some seconds later."""
        try:
            self.resume()
            self._signal(signal.SIGTERM)  # to all of them: a shell hands no signal on
            # a shell ends before what it started
            in_time = is_within(self.pid, DEAD, PROGRAM_CLOSE_S)
        finally:  # also if the greenlet is killed meanwhile
            self.kill()
        code = self._process.returncode
        self.closed = in_time and code not in _CRASHES
        if in_time and not self.closed:
            why = f"its process crashed as it closed, exit code {code}"
            self._member.error(why, self.ended_ms)

    def kill(self) -> None:
        """Kill what of it still runs, and read what it printed."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        is_within(self.pid, DEAD, PROGRAM_CLOSE_S)  # others of its group may end later
        self.ended_ms = now_ms()
        self._reader.kill()
        with suppress(BlockingIOError):  # one that left its group may hold the pipe open for ever
            self._take(os.read(self._output, _CHUNK))
        self._hear(self._begun)
        os.close(self._output)
        if self._log is not None:
            self._log.close()

    def pause(self) -> None:
        """Freeze its processes (SIGSTOP): no thread of them runs when this returns.

        Raises LoadtestError if one still runs after FREEZE_S.
        """
        self._signal(signal.SIGSTOP)
        if not is_within(self.pid, STOPPED, FREEZE_S):
            raise LoadtestError(
                f"{self._member.name!r}: process {self.pid} still runs {FREEZE_S:.0f} s after"
                " SIGSTOP; the machine may be overloaded"
            )

    def stop_polling(self) -> None:
        """Let the application poll no more, while the client's other threads go on.

        Nobody reads what it prints, and the pipe is full: the thread that prints what it polled
        blocks at its next line.
        """
        self._reader.kill()
        filler = os.open(f"/proc/self/fd/{self._output}", os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True:
                os.write(filler, _FILLER * _CHUNK)
        except BlockingIOError:
            pass  # it is full
        finally:
            os.close(filler)

    def unsubscribe(self) -> None:
        """Raise LoadtestError: nothing asks a program for that."""
        raise LoadtestError(f"{self._member.name!r} is a program, which cannot be asked for that")

    def resume(self) -> None:
        """Let its processes go on and poll."""
        self._signal(signal.SIGCONT)
        if self._reader.ready():
            self._reader = gevent.spawn(self._read)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # they have ended
            os.killpg(self.pid, number)

    def _last_words(self) -> str:
        if self._log is None:
            return "see locust.log"  # it has the standard error of the load
        log, last = Path(self._log.name), []
        with suppress(OSError), open_regular(log) as file:
            file.seek(max(self._log_began, file.seek(0, os.SEEK_END) - _LAST_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
            # its events are in the history; they come here later than what it prints as it ends
            words = [line for line in lines if line.strip() and not line.startswith("{")]
            last = [repr(line[:_LINE_LENGTH]) for line in words[-_LAST_LINES:]]
        return f"last in members/{log.name}: {' | '.join(last) or 'nothing'}"

    def _read(self) -> None:
        while data := nb_read(self._output, _CHUNK):
            self._take(data)
            gevent.sleep(0)  # else one that prints on and on would let no other member run

    def _take(self, data: bytes) -> None:
        """Take what it printed: whole lines are events, or other output."""
        data = data.replace(_FILLER, b"")
        if self._log is not None:
            self._log.write(data)
            self._log.flush()
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._hear(line)

    def _hear(self, line: bytes) -> None:
        with suppress(ValueError, TypeError, LookupError, AttributeError):  # other output
            self._see(json.loads(line))

    def _see(self, line: dict[str, Any]) -> None:
        member, at_ms = self._member, self._at_ms(line)
        match line.get("name"):
            case "partitions_assigned":
                member.assigned(_partitions(line), line.get("member_id"), at_ms)
            case "partitions_revoked" | "partitions_lost" as name:
                member.gave_up(name.removeprefix("partitions_"), _partitions(line), at_ms)
            case "offsets_committed" if line["success"]:
                member.committed(len(line["offsets"]), at_ms=at_ms)
            case "offsets_committed":
                member.not_committed(str(line.get("error")), at_ms=at_ms)
            case "record_data":
                self._says_records = True  # and their offsets in a sum afterwards, once more
                where, value = (line["topic"], int(line["partition"])), str(line.get("value"))
                member.processed.record(where, int(line["offset"]), value.encode(), at_ms)
            case "records_consumed" if not self._says_records:
                for one in line["partitions"]:
                    where = one["topic"], int(one["partition"])
                    first, last = int(one["minOffset"]), int(one["maxOffset"])
                    if 0 <= first <= last:
                        member.processed.offsets(where, first, last, at_ms)
            case "fenced":
                member.fenced(str(line["error"]), at_ms)
                self._fenced = True
            case "error":
                member.error(str(line["error"]), at_ms)

    def _at_ms(self, line: dict[str, Any]) -> float:
        """Return when the program wrote a line: it says so, and is read a little later."""
        until_ms, said_ms = self.ended_ms or now_ms(), line.get("timestamp")
        if isinstance(said_ms, int | float) and self._began_ms <= said_ms <= until_ms:
            return float(said_ms)
        return until_ms


def is_within(group: int, states: frozenset[str], within_s: float) -> bool:
    """Wait until all threads of a process group are in one of some states; return if they are.

    A signal takes effect when each thread gets it: on a machine whose CPUs are taken a process goes
    on for a while after a SIGSTOP or SIGKILL was sent.
    """
    with gevent.Timeout(within_s, False):
        while not states.issuperset(_states(group)):
            gevent.sleep(LOOK_EVERY_S)
        return True
    return False


def _states(group: int) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended by now
            if int(_fields(process)[2]) == group:
                for thread in process.parent.glob("task/*/stat"):
                    with suppress(OSError):  # this thread has, others go on
                        yield _fields(thread)[0]


def _fields(stat: Path) -> list[str]:
    """Return the fields behind the name of the program, which may hold anything."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()


def users_environment() -> dict[str, str]:
    """Return the environment without our packages, which may not be those of a program.

    The runner puts their folder first on PYTHONPATH, for the load.
    """
    found = {name: value for name, value in os.environ.items() if name != TLS_ENDS_AT_TAP}
    first, _, others = found.get("PYTHONPATH", "").partition(os.pathsep)
    if first == str(PACKAGES):
        found["PYTHONPATH"] = others
    if not found.get("PYTHONPATH"):
        found.pop("PYTHONPATH", None)
    return found


def _partitions(line: dict[str, Any]) -> set[tuple[str, int]]:
    return {(one["topic"], int(one["partition"])) for one in line["partitions"]}
