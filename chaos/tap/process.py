"""The tap as a child process: what it is started with, and the commands that it is given."""

import itertools
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import psutil

from chaos.child import Child, launch
from chaos.clusters.ports import HOST
from chaos.errors import ChaosError, GoneError
from chaos.tap.rules import Rule
from chaos.timing import SAME_START_MS, TAP_ANSWER_S, TAP_END_S, TAP_START_S
from chaos.waiting import until

LOG = "tap.log"


class TapGoneError(GoneError):
    """The tap's process has ended, and with it every rule and connection through it."""

    left = "the tap has ended, and its rules with it"


@dataclass(frozen=True, slots=True)
class TapSettings:
    """Where the brokers are, and how both sides of the tap speak.

    `brokers` are `host:port` by broker id, as the brokers advertise them to clients; those that
    appear later are learned from answers. `folder` gets one folder per broker with its `group.log`,
    and `tap.log`. `client_properties` (`scenarios.client_properties`) say whether the tap speaks
    TLS to the brokers, and how: names and passwords of users have no place there. Towards clients
    it speaks plain text, at `host`, an address of this machine.
    """

    brokers: Mapping[int, str]
    folder: Path
    client_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    host: str = HOST

    @property
    def shows_certificate(self) -> bool:
        """Whether the tap shows brokers that ask for it a certificate, which has a name (mTLS)."""
        return "ssl.certificate.location" in self.client_properties

    def to_brokers(self) -> ssl.SSLContext | None:
        """Return how the tap connects to brokers, None for plain text.

        Raises ChaosError if a file cannot be used.
        """
        properties = self.client_properties
        if not properties.get("security.protocol", "").endswith("SSL"):
            return None
        certificate = properties.get("ssl.certificate.location")
        key = properties.get("ssl.key.location", certificate)
        files = [properties.get("ssl.ca.location"), certificate, key]
        try:
            context = ssl.create_default_context(cafile=files[0])
            if certificate is not None:
                context.load_cert_chain(certificate, key, properties.get("ssl.key.password", ""))
        except (OSError, ssl.SSLError) as error:
            named = ", ".join(dict.fromkeys(file for file in files if file))
            raise ChaosError(f"TLS to the brokers: {named}: {error}; give PEM files") from error
        context.check_hostname = properties.get("ssl.endpoint.identification.algorithm") != "none"
        return context


class Commands(Child):
    """The commands to the tap; raises as `RunningTap`."""

    name, log, gone = "the tap", LOG, TapGoneError


@dataclass(frozen=True, slots=True)
class RunningTap:
    """The tap that runs; usable from any thread.

    Every command raises TapGoneError if the tap's process has ended, or does not answer in time: it
    is killed then, so that no rule outlasts the error. Raises ChaosError if the tap refuses it.

    `listeners` are the addresses for clients by broker id, and `bootstrap` all of them. `folder`
    has a folder with the `group.log` of each broker. `process_id` and `started_at_ms` are which
    process it is.
    """

    listeners: dict[int, str]
    folder: Path
    process_id: int
    started_at_ms: int
    _commands: Commands
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers for clients: `host:port` of every listener, comma-separated."""
        return ",".join(self.listeners.values())

    def new_id(self) -> str:
        """Return an id for a rule that no other has."""
        return f"r{next(self._numbers)}"

    def add(self, name: str, rule: Rule) -> None:
        """Put a rule in force under an id; it is when this returns."""
        self._commands.ask(TAP_ANSWER_S, do="add", name=name, rule=asdict(rule))

    def remove(self, rule: str) -> int:
        """End a rule by its id; return how many requests it has hit, 0 if it is not in force."""
        hits: int = self._commands.ask(TAP_ANSWER_S, do="remove", rule=rule)
        return hits

    def hits(self) -> dict[str, int]:
        """Return how many requests each rule in force has hit, by its id."""
        hits: dict[str, int] = self._commands.ask(TAP_ANSWER_S, do="hits")
        return hits


def has_ended(process_id: int, started_at_ms: int, within_s: float) -> bool:
    """Wait until the process with an id that started at a time has ended; tell whether it has.

    One that has ended and is not waited for by its parent yet has ended.
    """
    return until(lambda: not _runs(process_id, started_at_ms), within_s)


def _runs(process_id: int, started_at_ms: int) -> bool:
    try:
        process = psutil.Process(process_id)
        if abs(process.create_time() * 1000 - started_at_ms) >= SAME_START_MS:
            return False
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def running(settings: TapSettings) -> Iterator[RunningTap]:
    """Run the tap inside the block. Raises ChaosError if it does not start, or ended early."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    log = settings.folder / LOG
    commands = Commands(*launch("chaos.tap", log))
    try:
        yield _started(commands, settings, log)
        if (code := commands.exit_status) is not None:
            raise TapGoneError(f"the tap ended early (exit code {code}); see {log}")
    finally:
        commands.end(TAP_END_S)


def _started(commands: Commands, settings: TapSettings, log: Path) -> RunningTap:
    try:
        given = msgspec.to_builtins(settings, enc_hook=str)
        listeners = commands.ask(TAP_START_S, do="start", settings=given)
    except ChaosError as error:
        lines = log.read_text(errors="replace").strip().splitlines()
        why = lines[-1] if lines else error
        raise ChaosError(f"the tap did not start: {why}; see {log}") from error
    return RunningTap(
        listeners={int(node): address for node, address in listeners.items()},
        folder=settings.folder,
        process_id=commands.process_id,
        started_at_ms=round(psutil.Process(commands.process_id).create_time() * 1000),
        _commands=commands,
    )
