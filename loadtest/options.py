"""The command-line options that this load adds to Locust's own."""

from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from typing import get_args

from loadtest.client_configs import ClientConfigs, Kind, MemberConfig, ProducerConfig
from loadtest.errors import LoadtestError
from scenarios import names
from scenarios.durations import parse_positive_ms
from scenarios.releases import Coordinator

NO_EXPERIMENT = "none"
AS_IT_SAYS = "as the experiment says"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options; their values stay plain text, for Locust sends them to workers and page."""
    group = parser.add_argument_group("groupquake: members of Kafka consumer groups")
    group.add_argument(
        "--bootstrap",
        metavar="SERVERS",
        default="127.0.0.1:9092",
        help="Kafka's bootstrap servers, comma-separated (default: %(default)s)",
    )
    group.add_argument("--group", default="groupquake", help="consumer group (%(default)s)")
    group.add_argument(
        "--topic", default="orders", help="topic to read; it has to exist (%(default)s)"
    )
    group.add_argument(
        "--produce-rate",
        type=_rate,
        metavar="N",
        default=0.0,
        help="records a second that one producer writes to the topic (%(default)s: no producer)",
    )
    group.add_argument(
        "--history", metavar="FILE", help="append what clients see to FILE, one JSON object a line"
    )
    group.add_argument(
        "--control-file",
        metavar="FILE",
        help="take orders on a loopback port and write the port to FILE; the token that orders"
        " must bring is read from GROUPQUAKE_CONTROL_TOKEN",
    )
    group.add_argument(
        "--run-option",
        metavar="OPTION",
        action="append",
        default=[],
        help="hand an option on to `groupquake run`, such as --run-option=--ports=9092; repeatable",
    )
    for field in _form(group.add_argument):
        # what Locust's own parser notes of its options, a group does not
        vars(field).update(
            include_in_web_ui=True, is_secret=False, is_required=False, is_multiple=False
        )


def _form(add: Callable[..., Action]) -> tuple[Action, ...]:
    """Add the options that the page's start form has, too; empty text is no opinion."""
    known = [NO_EXPERIMENT, *names()]

    def experiment(text: str) -> str:
        if text not in known:
            known.append(text)  # a file, or a name that will be refused with the nearest right one
        return text

    return (
        add(
            "--experiment",
            type=experiment,
            choices=known,
            metavar="NAME|FILE",
            default=NO_EXPERIMENT,
            help="decides who takes part; from the page it is a run, with brokers, faults, verdict",
        ),
        add(
            "--static-members",
            type=_checked(count),
            metavar="N",
            default="",
            help="KIP-345; empty: as the experiment says, 4 without one",
        ),
        add(
            "--dynamic-members",
            type=_checked(count),
            metavar="N",
            default="",
            help="empty: as the experiment says, 4 without one",
        ),
        add(
            "--session-timeout",
            type=_checked(parse_positive_ms),
            metavar="TIME",
            default="",
            help="with a unit; empty: as the experiment says, 10s without one",
        ),
        add(
            "--kafka",
            metavar="VERSION",
            default="",
            help="release for the experiment's brokers, such as 4.3.0; empty: as it says",
        ),
        add(
            "--coordinator",
            choices=[AS_IT_SAYS, *get_args(Coordinator)],
            default=AS_IT_SAYS,
            help="group coordinator of the experiment's brokers",
        ),
        add(
            "--seed",
            metavar="N",
            default="",
            help="decides the order of the experiment's faults; empty: a random one",
        ),
    )


def experiments(options: Namespace) -> tuple[str, ...]:
    """Return the experiments that may be started from the page."""
    return (*names(), options.experiment)


def configs_of(options: Namespace) -> ClientConfigs:
    """Return the one group that the options describe.

    Raises LoadtestError if it is empty, or if what came from the page is no number or duration.
    """
    members = [
        _member(options, kind, number)
        for kind, count in _counts(options)
        for number in range(count)
    ]
    if not members:
        raise LoadtestError("nobody to run; give --static-members or --dynamic-members")
    producers = (
        [ProducerConfig("producer-0", options.topic, options.produce_rate)]
        if options.produce_rate > 0
        else []
    )
    return ClientConfigs(tuple(members), tuple(producers))


def _counts(options: Namespace) -> tuple[tuple[Kind, int], ...]:
    return (
        ("static", read("static members", count, options.static_members or "4")),
        ("dynamic", read("dynamic members", count, options.dynamic_members or "4")),
    )


def read(name: str, parse: Callable[[str], int], text: str) -> int:
    """Return what a field of the form says. Raises LoadtestError, naming the field."""
    try:
        return parse(text)
    except ValueError as error:
        raise LoadtestError(f"{name}: {error}") from error


def _member(options: Namespace, kind: Kind, number: int) -> MemberConfig:
    name = f"{options.group}-{kind}-{number}"
    session_ms = read("session timeout", parse_positive_ms, options.session_timeout or "10s")
    return MemberConfig(
        name=name,
        group=options.group,
        kind=kind,
        instance_id=name if kind == "static" else None,
        topics=(options.topic,),
        assignor="range",
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=min(3_000, session_ms // 3),
        max_poll_interval_ms=max(300_000, session_ms),
        commit_interval_ms=1_000,
    )


def _checked(parse: Callable[[str], int]) -> Callable[[str], str]:
    """Refuse text at the command line that would not do later, and keep it text."""

    def check(text: str) -> str:
        try:
            if text:
                parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error
        return text

    return check


def _rate(text: str) -> float:
    """Return records a second. Raises ArgumentTypeError if the text is no such number."""
    with suppress(ValueError):
        if isfinite(rate := float(text)) and rate >= 0:
            return rate
    raise ArgumentTypeError(f"{text!r} is no number of records a second; write 0 or more")


def count(text: str) -> int:
    """Return a number of members. Raises ValueError if the text is none."""
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no number of members")
    return int(text)
