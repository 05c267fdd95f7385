"""What goes on in this Locust process: a load and, with an experiment, the run it belongs to.

Without an experiment the load is there from the start, for whatever cluster the options name. With
one (from the page), Locust starts its users at once, and they wait: the runner, our child, starts a
cluster of its own first, then says `begin`. It says `finish` once nothing is broken any more; if
somebody stops the test before that, the runner is asked to end its plan and the users go on until
it has healed what was open. The comparison follows when they are gone.
"""

import secrets
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from locust.env import Environment

from loadtest import experiment
from loadtest.client_configs import ClientConfigs
from loadtest.client_pool import commands
from loadtest.control import ControlServer
from loadtest.errors import LoadtestError
from loadtest.load import Load, Row
from loadtest.ui_form import Choice
from loadtest.ui_run import Run
from loadtest.users import ClientUser, DynamicMember, Producer, StaticMember

SPAWN_RATE = 20


class LoadSession:
    """Puts one load after the other before Locust's users. Made once, before any of them starts."""

    def __init__(self, environment: Environment) -> None:
        assert environment.runner is not None, "Locust made it before it told us"
        self.environment = environment
        self.runner = environment.runner
        self.runs: list[Run] = []
        self.load: Load | None = None
        self._classes = list(environment.user_classes)
        self._configs: ClientConfigs | None = None
        self._chosen: Choice | None = None
        self._token = secrets.token_hex(16)
        self._control: ControlServer | None = None
        self._commands = {"begin": self._begin, "finish": self._finish, "quit": self._quit}
        self._stopping = False
        self._empty = Event()

    @property
    def run(self) -> Run | None:
        """The run that was started last, if the last start was one."""
        return self.runs[-1] if self.runs and self._chosen is not None else None

    @property
    def busy(self) -> bool:
        """Whether a run goes on; users may have gone already."""
        return self.run is not None and self.run.goes_on

    def set_user_classes(self, configs: ClientConfigs) -> int:
        """Make the roster what Locust spawns; return how many users that is."""
        StaticMember.fixed_count = len(configs.of_kind("static"))
        DynamicMember.fixed_count = len(configs.of_kind("dynamic"))
        Producer.fixed_count = len(configs.producers)
        # To Locust a class with no fixed count is one to fill up with.
        wanted = [user for user in self._classes if user.fixed_count]
        if not wanted:
            raise LoadtestError("nobody to run of the user classes named; name others, or none")
        self.environment.user_classes[:] = wanted
        return sum(user.fixed_count for user in wanted)

    def start_load(self, configs: ClientConfigs, bootstrap: str, history: str | None) -> None:
        """Give the users a new load, unless they have the like already."""
        if self.load is not None and configs == self._configs:
            return
        self.close_load()
        path = Path(history) if history else None
        self.load = Load(configs, bootstrap, path, self.environment.events)
        self._configs = configs
        ClientUser.client_pool = self.load.client_pool
        self._commands.update(commands(self.load.client_pool))

    def close_load(self) -> None:
        """Take the load away, closing what is open still; what it saw stays to be looked at."""
        ClientUser.client_pool = None
        if self.load is not None:
            self.load.close()

    def choose(self, choice: Choice | None) -> int:
        """Take note of what the next start is to be; return how many users it needs, if a run."""
        users = self.set_user_classes(experiment.configs_in(choice.experiment)) if choice else 0
        if choice or self._chosen:
            self.close_load()
            self.load = None
        self._chosen = choice
        return users

    def control(self, token: str | None = None) -> ControlServer:
        """Return the way in for orders, with a token of its own unless there is one to be."""
        if self._control is None:
            self._token = token or self._token
            self._control = ControlServer(self._token, self._commands)
        return self._control

    def on_start(self) -> None:
        """Locust starts its users: start the run that they are for."""
        self._stopping = False
        self._empty.clear()
        if self._chosen is not None:
            port = self.control().port
            self.runs.append(
                Run(
                    self._chosen.experiment.name,
                    self._chosen.arguments,
                    port=port,
                    token=self._token,
                    over=self._on_run_over,
                )
            )
            if self._chosen.remark:
                self.runs[-1].lines.append(self._chosen.remark)

    def on_stopping(self) -> None:
        """Locust is about to stop its users, who have to live until all is healed."""
        self._stopping = True
        if self.run is not None and not self.run.closing.is_set():
            self.run.stop()

    def on_stop(self) -> None:
        """Locust has stopped its users."""
        if self.run is not None:
            self.close_load()
            if self.run.goes_on:
                self.run.state = "comparing"
        self._empty.set()

    def end(self) -> int:
        """End a run that goes on, healed; return the exit code of the last one. There is one."""
        return self.runs[-1].end()

    def tables(self) -> dict[str, list[Row]]:
        """Return what the page shows, by table."""
        seen = self.load.seen() if self.load is not None and self.run is None else []
        told = {} if self.run is None else self.run.tables
        members = [] if self.load is None else self.load.members()
        return {"rebalances": seen, "faults": [], "members": members, **told}

    def _begin(self, request: dict[str, Any]) -> None:
        run = self.run
        if run is None or self._stopping:
            raise LoadtestError("nobody waits for a cluster any more")
        configs = experiment.configs_of(request["experiment"])
        self.start_load(configs, request["bootstrap"], request["history"])
        run.state = "running"

    def _finish(self, _: dict[str, Any]) -> None:
        if self.run is not None:
            self.run.state = "closing"
            self.run.closing.set()
        self._stop_users()
        self._empty.wait()

    def _on_run_over(self, _: Run) -> None:
        self._stop_users()

    def _stop_users(self) -> None:
        if not self._stopping:
            self._stopping = True
            gevent.spawn(self.runner.stop)

    def _quit(self, _: dict[str, Any]) -> None:
        """End with 0, failures or not: who gave the order judges the run by other evidence."""
        self.environment.process_exit_code = 0
        gevent.spawn(self._leave)

    def _leave(self) -> None:
        self.runner.quit()
        if self.environment.web_ui:
            self.environment.web_ui.stop()
