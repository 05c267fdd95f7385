"""The command-line options that this load adds to Locust's own."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from loadtest.errors import LoadtestError
from loadtest.roster import Kind, MemberConfig, ProducerConfig, Roster
from scenarios.durations import parse_positive_ms


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options; their values stay plain, since Locust sends them to its workers."""
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
        "--static-members", type=_count, metavar="N", default=4, help="KIP-345 (%(default)s)"
    )
    group.add_argument(
        "--dynamic-members", type=_count, metavar="N", default=4, help="(%(default)s)"
    )
    group.add_argument(
        "--session-timeout",
        type=_duration_ms,
        metavar="TIME",
        default=10_000,
        help="session.timeout.ms with a unit, such as 10s, which is the default",
    )
    group.add_argument(
        "--produce-rate",
        type=float,
        metavar="N",
        default=0.0,
        help="records a second that one producer writes to the topic (%(default)s: no producer)",
    )
    group.add_argument(
        "--experiment",
        metavar="FILE",
        help="take groups, members and producers from this experiment instead of the options",
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


def roster_of(options: Namespace) -> Roster:
    """Return the one group that the options describe. Raises LoadtestError if it is empty."""
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
    return Roster(tuple(members), tuple(producers))


def _counts(options: Namespace) -> tuple[tuple[Kind, int], ...]:
    return ("static", options.static_members), ("dynamic", options.dynamic_members)


def _member(options: Namespace, kind: Kind, number: int) -> MemberConfig:
    name = f"{options.group}-{kind}-{number}"
    return MemberConfig(
        name=name,
        group=options.group,
        kind=kind,
        instance_id=name if kind == "static" else None,
        topics=(options.topic,),
        assignor="range",
        session_timeout_ms=options.session_timeout,
        heartbeat_interval_ms=min(3_000, options.session_timeout // 3),
        max_poll_interval_ms=max(300_000, options.session_timeout),
        commit_interval_ms=1_000,
    )


def _duration_ms(text: str) -> int:
    try:
        return parse_positive_ms(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from error


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no number of members")
    return int(text)
