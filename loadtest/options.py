"""The command-line options that the load adds to Locust's."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from contextlib import suppress
from typing import Any, get_args

from loadtest.configs import ClientConfigs, Kind, MemberConfig, ProducerConfig
from loadtest.errors import LoadtestError
from loadtest.members.settings import TOKEN_VARIABLE
from scenarios import names
from scenarios.clients import IN_LOAD
from scenarios.durations import parse_positive_ms
from scenarios.fields import MOST
from scenarios.releases import Coordinator

NO_EXPERIMENT = "none"
DEMO = "demo"
"""The experiment that the page offers where no cluster is named."""
AS_IT_SAYS = "as the experiment says"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options; values stay text, since Locust sends them to workers and page."""
    group = parser.add_argument_group("groupquake: members of Kafka consumer groups")
    group.add_argument(
        "--bootstrap",
        metavar="SERVERS",
        default="",
        help="Kafka's bootstrap servers, comma-separated; the same as Locust's --host",
    )
    group.add_argument("--group", default="groupquake", help="consumer group (%(default)s)")
    group.add_argument(
        "--topic", default="orders", help="topic to read; it has to exist (%(default)s)"
    )
    group.add_argument(
        "--client",
        choices=IN_LOAD,
        default=IN_LOAD[0],
        help="client of the members; `wire` is groupquake's own, without records (%(default)s)",
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
        help="listen for control commands on a loopback port, and write the port to FILE; the"
        f" token of the commands is read from {TOKEN_VARIABLE}",
    )
    group.add_argument(
        "--run-option",
        metavar="OPTION",
        action="append",
        default=[],
        help="hand an option on to `groupquake run`, such as --run-option=--ports=9092; repeatable",
    )
    group.add_argument("--open-page", action="store_true", help="open the live page in the browser")
    for name, more in form().items():
        field = group.add_argument(f"--{name.replace('_', '-')}", **more)
        # attributes that Locust's parser sets, and a group does not
        vars(field).update(
            include_in_web_ui=True, is_secret=False, is_required=False, is_multiple=False
        )


def form() -> dict[str, dict[str, Any]]:
    """Return what is also in the page's start form, in its order; empty text changes nothing."""
    known = [NO_EXPERIMENT, *names()]

    def experiment(text: str) -> str:
        if text not in known:  # a file, or an unknown name, refused later with the nearest known
            known.append(text)
        return text

    def text(metavar: str, meaning: str, parse: Callable[[str], object] = str) -> dict[str, Any]:
        return {"type": _checked(parse), "metavar": metavar, "default": "", "help": meaning}

    members = "empty: as in the experiment, 4 without one"
    return {
        "experiment": {
            "type": experiment,
            "choices": known,
            "metavar": "NAME|FILE",
            "default": NO_EXPERIMENT,
            "help": "takes the members from an experiment; the page starts it as a run with a"
            " verdict",
        },
        "static_members": text("N", f"static members (KIP-345); {members}", count),
        "dynamic_members": text("N", f"dynamic members; {members}", count),
        "session_timeout": text(
            "TIME",
            "session timeout with a unit; empty: as in the experiment, 10s without one",
            parse_positive_ms,
        ),
        "kafka": text(
            "VERSION",
            "release of the experiment's brokers, such as 4.3.0; empty: as in the experiment",
        ),
        "coordinator": {
            "choices": [AS_IT_SAYS, *get_args(Coordinator)],
            "default": AS_IT_SAYS,
            "help": "group coordinator of the experiment's brokers",
        },
        "seed": text("N", "decides the order of the experiment's faults; empty: a random one"),
    }


def has_experiment(options: Namespace) -> bool:
    """Return whether an experiment is named."""
    return bool(options.experiment != NO_EXPERIMENT)


def configs_of(options: Namespace) -> ClientConfigs:
    """Return the clients of the one group that the options describe.

    Raises LoadtestError if there are none, or for a value from the page that is invalid.
    """
    wanted = {"static": options.static_members, "dynamic": options.dynamic_members}
    counts = {kind: read(f"{kind} members", count, wanted[kind] or "4") for kind in get_args(Kind)}
    members = [_member(options, kind, number) for kind in counts for number in range(counts[kind])]
    if not members:
        raise LoadtestError("no members to run; give --static-members or --dynamic-members")
    producer = ProducerConfig("producer-0", options.topic, options.produce_rate)
    return ClientConfigs(tuple(members), (producer,) if producer.rate > 0 else ())


def read(name: str, parse: Callable[[str], int], text: str) -> int:
    """Parse a field of the form. Raises LoadtestError with the field's name."""
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
        client=options.client,
    )


def _checked(parse: Callable[[str], object]) -> Callable[[str], str]:
    """Refuse invalid text at the command line; valid text stays text."""

    def check(text: str) -> str:
        try:
            if text:
                parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error
        return text

    return check


def _rate(text: str) -> float:
    """Parse records a second. Raises ArgumentTypeError for invalid text."""
    with suppress(ValueError):
        if 0 <= (rate := float(text)) <= 1_000_000:
            return rate
    raise ArgumentTypeError(f"{text!r} is no number of records a second; write 0 to 1000000")


def count(text: str) -> int:
    """Parse a number of members. Raises ValueError for invalid text."""
    if not text.isdecimal() or float(text) > MOST:
        raise ValueError(f"{text!r} is no number of members; write up to {MOST}")
    return int(text)
