"""The load as Locust runs it: `locust -f loadtest/locustfile.py --bootstrap 127.0.0.1:9092`.

Locust finds the user classes by their names in this module; the listeners put the parts together
once the command line is known. Nothing of Kafka is made before a user starts, because Locust forks
its workers after the import.
"""

# Locust's events, runners and web interface have no types.
# mypy: disable-error-code="untyped-decorator, no-untyped-call"

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import gevent
from locust import events
from locust.env import Environment
from locust.runners import LocalRunner, WorkerRunner

from loadtest import experiment, hub_lag, options
from loadtest.control import ControlServer
from loadtest.errors import LoadtestError
from loadtest.fleet import Fleet
from loadtest.history import History
from loadtest.protocol import Verbs, member_of
from loadtest.roster import Roster
from loadtest.users import DynamicMember, FleetUser, Producer, StaticMember

SPAWN_RATE = 20
BAD_USAGE = 64
TOKEN_VARIABLE = "GROUPQUAKE_CONTROL_TOKEN"  # noqa: S105 (where it is, not what it is)


@events.init_command_line_parser.add_listener
def add_options(parser: ArgumentParser, **_: object) -> None:
    """Let Locust know our options."""
    options.add_arguments(parser)


@events.init.add_listener
def on_init(environment: Environment, **_: object) -> None:
    """Get ready whoever decides how many users there are; workers wait for their number."""
    if not isinstance(environment.runner, WorkerRunner):
        _or_exit(_prepare, environment)


@events.test_start.add_listener
def on_test_start(environment: Environment, **_: object) -> None:
    """Get a worker ready: by now the master has told it its number and the options."""
    if isinstance(environment.runner, WorkerRunner) and not hasattr(FleetUser, "fleet"):
        _or_exit(_prepare_worker, environment)


def _or_exit(step: Any, environment: Environment) -> None:
    try:
        step(environment)
    except LoadtestError as error:
        print(f"groupquake: {error}", file=sys.stderr)
        sys.exit(BAD_USAGE)


def _prepare(environment: Environment) -> None:
    given = _options(environment)
    alone = isinstance(environment.runner, LocalRunner)
    if not alone and (given.experiment or given.control_file):
        raise LoadtestError(
            "--experiment and --control-file need one Locust process, because every member has"
            " one place; leave out --master, --worker and --processes"
        )
    roster = (
        experiment.roster_of(given.experiment) if given.experiment else options.roster_of(given)
    )
    _spawn_exactly(roster, environment)
    if alone:
        _launch(roster, environment)


def _prepare_worker(environment: Environment) -> None:
    roster = options.roster_of(_options(environment))
    runner = environment.runner
    assert isinstance(runner, WorkerRunner), "nobody else waits for a number"
    _launch(roster.on_worker(runner.worker_index), environment)


def _spawn_exactly(roster: Roster, environment: Environment) -> None:
    """Make the roster what Locust spawns, unless --users asks for fewer."""
    StaticMember.fixed_count = len(roster.of_kind("static"))
    DynamicMember.fixed_count = len(roster.of_kind("dynamic"))
    Producer.fixed_count = len(roster.producers)
    # To Locust a class with no fixed count is one to fill up with.
    wanted = [user for user in environment.user_classes if user.fixed_count]
    if not wanted:
        raise LoadtestError("nobody to run of the user classes named; name others, or none")
    environment.user_classes[:] = wanted
    given = _options(environment)
    given.num_users = given.num_users or sum(user.fixed_count for user in wanted)
    given.spawn_rate = given.spawn_rate or SPAWN_RATE


def _launch(roster: Roster, environment: Environment) -> None:
    given = _options(environment)
    history = History(Path(given.history) if given.history else None)
    fleet = FleetUser.fleet = Fleet(roster, given.bootstrap, history, environment.events)
    environment.events.quit.add_listener(lambda **_: _finish(fleet, history))
    gevent.spawn(hub_lag.watch, history)
    if given.control_file:
        token = os.environ.get(TOKEN_VARIABLE)
        if not token:
            raise LoadtestError(f"--control-file needs a token in {TOKEN_VARIABLE}; set it")
        ControlServer(token, _verbs(environment)).announce(Path(given.control_file))


def _finish(fleet: Fleet, history: History) -> None:
    # Told twice to end, Locust does not wait for users that it is stopping already.
    fleet.close()
    history.close()


def _verbs(environment: Environment) -> Verbs:
    fleet = FleetUser.fleet
    return {
        "members": lambda _: fleet.members(),
        "stop": lambda request: fleet.stop(member_of(request)),
        "start": lambda request: fleet.start(member_of(request)),
        "quit": lambda _: _quit_soon(environment),
    }


def _quit_soon(environment: Environment) -> None:
    """End with 0, failures or not: who gave the order judges the run by other evidence."""
    environment.process_exit_code = 0
    gevent.spawn(_quit, environment)


def _quit(environment: Environment) -> None:
    assert environment.runner is not None, "Locust made it before it told us"
    environment.runner.quit()
    if environment.web_ui:
        environment.web_ui.stop()


def _options(environment: Environment) -> Namespace:
    given: Namespace | None = environment.parsed_options
    assert given is not None, "Locust's command line always parses options"
    return given
