"""The load as Locust runs it: `locust -f loadtest/locustfile.py [-H HOST:PORT]`.

Without a cluster, the page offers an experiment, whose run starts brokers of its own.
Locust finds the user classes by their names in this module. The listeners build the load session
when the command line is parsed. No Kafka client is made before a user starts, because Locust forks
its workers after the import.
"""

# Locust's events, runners and web interface have no types.
# mypy: disable-error-code="untyped-decorator, no-untyped-call"

import gc
import os
import resource
import signal
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import gevent
from locust import events
from locust.env import Environment
from locust.runners import LocalRunner, WorkerRunner

from kafka_protocol.printable import printable
from loadtest import options
from loadtest.cluster import require_reachable
from loadtest.configs import PORTABLE, configs_of
from loadtest.dies_with_parent import end_with
from loadtest.errors import LoadtestError
from loadtest.load_session import LoadSession
from loadtest.members.settings import TOKEN_VARIABLE
from loadtest.page.form import choose
from loadtest.page.page import OWN_BROKERS, Page
from loadtest.users import DynamicMember, Producer, StaticMember

BAD_USAGE = 64

__all__ = ["DynamicMember", "Producer", "StaticMember"]
"""The user classes that Locust finds."""


@events.init_command_line_parser.add_listener
def add_options(parser: ArgumentParser, **_: object) -> None:
    """Add our options; by default Locust's page listens on 127.0.0.1."""
    parser.set_defaults(web_host="127.0.0.1")
    options.add_arguments(parser)


@events.init.add_listener
def on_init(environment: Environment, **_: object) -> None:
    """Prepare the load session."""
    token = os.environ.pop(TOKEN_VARIABLE, None)  # no member may command the load
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # each member of `wire` has a socket
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    given = environment.parsed_options
    assert given is not None, "Locust's command line always parses options"
    try:
        if isinstance(environment.runner, WorkerRunner):
            _prepare_worker(environment, given)
        else:
            _prepare(environment, given, token)
    except LoadtestError as error:
        print(f"groupquake: {printable(str(error))}", file=sys.stderr)
        sys.exit(BAD_USAGE)


@events.spawning_complete.add_listener
def on_spawning_complete(**_: object) -> None:
    """Keep the garbage collector off what stays: it would stop thousands of members each time."""
    gc.unfreeze()  # of an earlier load
    gc.collect()
    gc.freeze()


def _prepare(environment: Environment, given: Namespace, token: str | None) -> None:
    alone = isinstance(environment.runner, LocalRunner)
    given.bootstrap = given.bootstrap or given.host or ""
    if not given.bootstrap and environment.web_ui and alone and not options.has_experiment(given):
        given.experiment = options.DEMO
        # Locust reads the command line again for each page
        events.init_command_line_parser.add_listener(
            lambda parser, **_: parser.set_defaults(experiment=options.DEMO)
        )
    named = options.has_experiment(given)
    if not given.bootstrap and not (named and environment.web_ui):
        raise LoadtestError(
            "no cluster to load; name one by -H HOST:PORT, or run an experiment with brokers of its"
            " own: groupquake run NAME"
        )
    if named and environment.web_ui and not alone:
        raise LoadtestError(
            "the page runs an experiment in one Locust process; leave out --master and --processes,"
            " or add --headless"
        )
    session = _session(environment)
    if named and environment.web_ui:
        users = session.choose(choose(vars(given), given.run_option))
    else:
        configs = configs_of(given.experiment) if named else options.configs_of(given)
        if not alone and not given.processes and (programs := configs.programs()):
            raise LoadtestError(
                f"{programs[0]} is a program, and runs beside the folder of its run; use"
                f" --processes, or one of the clients {', '.join(PORTABLE)}"
            )
        users = session.set_user_classes(configs)
        if not environment.web_ui and not given.control_file:  # a runner knows its cluster
            require_reachable(given.bootstrap)
        session.start_load(configs, given.bootstrap, given.history)
    given.num_users = given.num_users or users
    given.spawn_rate = given.spawn_rate or session.spawn_rate
    if given.control_file:
        if not token:
            raise LoadtestError(f"--control-file needs a token in {TOKEN_VARIABLE}; set it")
        announce = session.control(token).announcement(Path(given.control_file))
        if session.master is None:
            announce()
        else:  # its users start once the workers are there
            gevent.spawn(session.master.when_connected, given.expect_workers, announce)
    if environment.web_ui:
        # Locust's page shows a host, meant for a web server, and has a field for it.
        environment.host = OWN_BROKERS if named else given.bootstrap
        Page(session, given)


def _prepare_worker(environment: Environment, given: Namespace) -> None:
    """Be a worker: what it needs of the load comes from the master, with each client it leases."""
    if given.processes:  # Locust forked it, and does not end it with its master
        end_with(os.getppid())
    session = _session(environment)
    environment.events.test_start.add_listener(
        lambda **_: session.start_load_of_worker(given.bootstrap)
    )
    environment.events.quitting.add_listener(lambda **_: session.close_load())


def _session(environment: Environment) -> LoadSession:
    session = LoadSession(environment)
    environment.events.test_start.add_listener(lambda **_: session.on_start())
    environment.events.test_stopping.add_listener(lambda **_: session.on_stopping())
    environment.events.test_stop.add_listener(lambda **_: session.on_stop())
    environment.events.quitting.add_listener(lambda **_: _end(session, environment))
    environment.events.quit.add_listener(lambda **_: session.close_load())
    return session


def _end(session: LoadSession, environment: Environment) -> None:
    """End the run before its members, which healing needs; its exit code becomes ours."""
    if session.runs:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # further Ctrl-C changes nothing
        environment.process_exit_code = session.end()
