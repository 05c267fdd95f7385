"""The load session of this Locust process: a load and, with an experiment, the run it belongs to.

Without an experiment, the load starts with Locust, on the cluster that the options name. With an
experiment (from the page), Locust starts its users at once, and they wait. The runner, a child
process, starts a cluster, then sends the command `begin`. It sends `finish` once all faults are
healed. If a user of the page stops the test earlier, the runner ends its plan, and the members run
until it has healed the open faults. The analysis follows when the members are closed.

With several Locust processes the master has the leases, the control channel and the history
(`loadtest.workers`), and each worker has the clients that its users lease.
"""

import os
import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.runners import STATE_INIT, STATE_STOPPED, MasterRunner, WorkerNode, WorkerRunner

from loadtest import configs, options
from loadtest.configs import NO_CLIENTS, ClientConfigs
from loadtest.control import ControlServer
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.lease_table import LeaseTable
from loadtest.load import SHOWN, Load
from loadtest.page.events import Live
from loadtest.page.form import Choice
from loadtest.page.plain import Plain
from loadtest.page.run import Run
from loadtest.pool import ClientPool
from loadtest.timing import SPAWN_RATE
from loadtest.users import ClientUser, DynamicMember, Producer, StaticMember
from loadtest.workers.master import LoadMaster
from loadtest.workers.worker import LoadWorker

if TYPE_CHECKING:
    from loadtest.control import Command
    from loadtest.telemetry import Telemetry


CRASHED = 1
"""The exit code of a worker that its master lost."""


class LoadSession:
    """Gives Locust's users one load after the other. Made once, before any user starts."""

    def __init__(self, environment: Environment) -> None:
        assert environment.runner is not None, "Locust makes the runner first"
        self.environment = environment
        self.runner = environment.runner
        self.runs: list[Run] = []
        self._no_run, self._plain = Live(), Plain()
        self.load: Load | None = None
        self.spawn_rate = SPAWN_RATE
        """How many users a second Locust starts."""
        self._classes = list(environment.user_classes)
        self._loaded: tuple[ClientConfigs, str] | None = None
        """The clients and the cluster of the load."""
        self._chosen: Choice | None = None
        self._token = secrets.token_hex(16)
        self._control: ControlServer | None = None
        self._commands: dict[str, Command] = {
            "begin": self._begin,
            "finish": self._finish,
            "quit": self._quit,
        }
        self._stopping = False
        self._empty = Event()
        self.started = Event()
        """Set once the latest start has begun; who starts clears it before."""
        self.master: LoadMaster | None = None
        self._worker: LoadWorker | None = None
        given, runner = environment.parsed_options, environment.runner
        assert given is not None, "Locust's command line always parses options"
        if isinstance(runner, MasterRunner):
            stay = options.has_experiment(given)
            if stay:
                environment.dispatcher_class = FixedWorkers
            self.master = LoadMaster(runner, environment.events, stay=stay)
        elif isinstance(runner, WorkerRunner):
            # the history of a worker's own command line: programs need what is beside it
            folder = Path(given.history).parent if given.history else None
            self._worker = LoadWorker(runner, folder, self.close_load, partial(os._exit, CRASHED))
        self._telemetry = _telemetry() if given.otel and self._worker is None else None

    @property
    def run(self) -> Run | None:
        """The latest run, if the latest start was a run."""
        return self.runs[-1] if self.runs and self._chosen is not None else None

    @property
    def feed(self) -> Live:
        """The live state of the load that goes on, or of the latest run; first it is empty."""
        if self.run is None and self.load is not None:
            return self._plain.of(self.load)
        return self.runs[-1].feed if self.runs else self._no_run

    @property
    def busy(self) -> bool:
        """Whether a run is in progress; its users may have ended already."""
        return self.run is not None and self.run.goes_on

    @property
    def most_users(self) -> int:
        """How many users the load has clients for."""
        return sum(user.fixed_count for user in self.environment.user_classes)

    def set_user_classes(self, clients: ClientConfigs) -> int:
        """Set how many users of each class Locust spawns; return their total."""
        StaticMember.fixed_count = len(clients.of_kind("static"))
        DynamicMember.fixed_count = len(clients.of_kind("dynamic"))
        Producer.fixed_count = len(clients.producers)
        self.spawn_rate = configs.spawn_rate(member.client for member in clients.members)
        # Locust fills up with users of classes without a fixed count.
        wanted = [user for user in self._classes if user.fixed_count]
        if not wanted:
            raise LoadtestError("no users of the named classes to run; name others, or none")
        self.environment.user_classes[:] = wanted
        return self.most_users

    def start_load(self, clients: ClientConfigs, bootstrap: str, file: str | None) -> None:
        """Start a new load with a history in `file`, unless one of the same clients exists."""
        if self.load is not None and (clients, bootstrap) == self._loaded:
            return
        self.close_load()
        history = History(Path(file) if file else None)
        if self.master is not None:
            self.master.begin(clients, history)
            self._open_load(history, self.master)
        else:
            leases, locust = LeaseTable(clients), self.environment
            self._open_load(history, ClientPool(leases, clients, bootstrap, history, locust))
        if self._telemetry:
            history.watchers.append(self._telemetry.see)
            self._telemetry.follow(history.path, lambda: self._commands["members"]({}))
        self._loaded = clients, bootstrap

    def start_load_of_worker(self, bootstrap: str) -> None:
        """Start a load with the clients that the master leases; its history goes there."""
        assert self._worker is not None, "only workers have a master"
        self.close_load()
        history = History(self._worker.begin(self._commands))
        self._open_load(
            history, ClientPool(self._worker, NO_CLIENTS, bootstrap, history, self.environment)
        )

    def _open_load(self, history: History, clients: ClientPool | LoadMaster) -> None:
        if isinstance(clients, ClientPool):
            ClientUser.client_pool = clients
        self._commands.update(clients.commands())
        self.load = Load(history, clients)

    def close_load(self) -> None:
        """Close the load; the rows of what its clients observed stay."""
        ClientUser.client_pool = None
        if self.load is not None:
            self.load.close()
        if self._worker is not None:
            self._worker.end()
        if self._telemetry:
            self._telemetry.end()

    def choose(self, choice: Choice | None) -> int:
        """Choose the run of the next start, or none; return how many users it needs."""
        users = self.set_user_classes(configs.configs_in(choice.experiment)) if choice else 0
        if choice or self._chosen:
            self.close_load()
            self.load = None
        self._chosen = choice
        return users

    def control(self, token: str | None = None) -> ControlServer:
        """Return the control server; the first call starts it, with `token` or a new one."""
        if self._control is None:
            self._token = token or self._token
            self._control = ControlServer(self._token, self._commands)
        return self._control

    def on_start(self) -> None:
        """Locust starts its users: start the chosen run."""
        self._stopping = False
        self._empty.clear()
        if self.master is not None:
            self.master.watch_for_losses()
        if (chosen := self._chosen) is not None:
            port = self.control().port
            run = Run(chosen, port=port, token=self._token, over=self._stop_users)
            self.runs.append(run)
        self.started.set()

    def on_stopping(self) -> None:
        """Locust is about to stop its users; return when the runner has healed all faults."""
        self._stopping = True
        if self.master is not None:
            self.master.stop_workers()
        if self.run is not None and not self.run.closing.is_set():
            self.run.stop()

    def on_stop(self) -> None:
        """Locust has stopped its users."""
        if self.run is not None or self._worker is not None:
            self.close_load()
        if self.run is not None and self.run.goes_on:
            self.run.state = "comparing"
        self._empty.set()

    def end(self) -> int:
        """End the latest run, with all faults healed; return its exit code. There must be one."""
        return self.runs[-1].end()

    def marks(self) -> list[dict[str, Any]]:
        """Return what is marked on Locust's charts, of the latest: `at_ms`, `kind` and `text`."""
        live: dict[str, list[dict[str, Any]]] = self.feed.state
        return [
            {"at_ms": one["at_ms"], "kind": "rebalance", "text": one["group"]}
            for one in live.get("rebalances", live.get("seen", []))[-SHOWN:]
        ] + [
            {"at_ms": at_ms, "kind": "fault", "text": f"{one['fault']} {one['target']}"}
            for one in live.get("faults", [])[-SHOWN:]
            if (at_ms := one["injected_ms"]) is not None
        ]

    def _begin(self, request: dict[str, Any]) -> None:
        run = self.run
        if run is None or self._stopping:
            raise LoadtestError("no users wait for a cluster; the test was stopped")
        clients = configs.configs_of(request["experiment"])
        self.start_load(clients, request["bootstrap"], request["history"])
        run.state = "running"

    def _finish(self, _: dict[str, Any]) -> list[str]:
        """Close all members; return what is missing of the load, in words. Again does no more."""
        if self.run is not None and not self.run.closing.is_set():
            self.run.state = "closing"
            self.run.closing.set()
        if self.runner.state not in (STATE_INIT, STATE_STOPPED):
            self._stop_users()
            self._empty.wait()
        if self.run is None and self.load is not None:
            self.load.clients.close()
        return self.master.missing() if self.master is not None else []

    def _stop_users(self) -> None:
        if not self._stopping:
            self._stopping = True
            gevent.spawn(self.runner.stop)

    def _quit(self, _: dict[str, Any]) -> None:
        """End with exit code 0 in any case: the runner judges the run by other evidence."""
        self.environment.process_exit_code = 0
        gevent.spawn(self._leave)

    def _leave(self) -> None:
        self.runner.quit()
        if self.environment.web_ui:
            self.environment.web_ui.stop()


class FixedWorkers(UsersDispatcher):
    """Locust's dispatcher for the members of an experiment: each stays where it is.

    Locust's own would stop members on one worker to start them on another: rebalances that no fault
    of the plan explains.
    """

    def add_worker(self, worker_node: WorkerNode) -> None:
        """Give no users to workers that come later."""

    def remove_worker(self, worker_node: WorkerNode) -> None:
        """Move none when a worker is lost."""


def _telemetry() -> "Telemetry":
    """Return what exports the loads, for `--otel`. Raises LoadtestError without its packages."""
    try:
        from loadtest.telemetry import Telemetry  # noqa: PLC0415 (its packages are an extra's)
    except ImportError as error:
        raise LoadtestError(
            f"--otel: {error}; install what it needs: pip install '.[otel]' in a checkout of"
            " groupquake"
        ) from error
    return Telemetry()
