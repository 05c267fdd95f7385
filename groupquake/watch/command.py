"""`groupquake watch`: rebalances as brokers' logs tell them."""

import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import msgspec
from rich.live import Live

from groupquake.commands.incident import time_zone
from groupquake.commands.options import is_port
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.signals import SIGNALS
from groupquake.watch.counting import Counting, Position, State
from groupquake.watch.files import PACKED, FollowedFile, logs_of
from groupquake.watch.follower import Follower
from groupquake.watch.group_counts import Storm
from groupquake.watch.metrics import exported, served
from groupquake.watch.pipes import Pipe, command_line
from groupquake.watch.screen import Lines, Screen, summary
from groupquake.watch.webhook import posting
from scenarios.regular_files import open_regular, replace_file

STANDARD_INPUT = ("-", "/dev/stdin")


def address(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Return HOST:PORT of a port with or without a host; the host is this machine by default."""
    if text is None:
        return None
    host, _colon, port = text.rpartition(":")
    if not is_port(port):
        raise click.BadParameter(f"{text!r} is no port; write PORT or HOST:PORT")
    return f"{host or '127.0.0.1'}:{port}"


def web_address(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Check the URL of a webhook."""
    if text is not None and not text.startswith(("http://", "https://")):
        raise click.BadParameter(f"{text!r} is no URL; write http://… or https://…")
    return text


@click.command()
@click.argument("sources", metavar="[LOG|-]…", nargs=-1)
@click.option(
    "--command", "commands", metavar="COMMAND", multiple=True,
    help="Follow what a command writes, such as 'kubectl logs -f kafka-0'; it is started again"
    " when it ends. Any number.",
)  # fmt: skip
@click.option("--from-end", is_flag=True, help="Leave out what files hold already.")
@click.option(
    "--state", "state_file", metavar="FILE", type=click.Path(path_type=Path),
    help="Keep counts and positions there, and go on from them.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line for each event.")
@click.option(
    "--metrics", metavar="[HOST:]PORT", callback=address,
    help="Serve /metrics for Prometheus, by default to this machine alone.",
)  # fmt: skip
@click.option("--otel", is_flag=True, help="Export metrics by OpenTelemetry (OTEL_… variables).")
@click.option(
    "--webhook", metavar="URL", callback=web_address, help="POST each storm there, as JSON."
)
@click.option(
    "--time-zone", "zone", metavar="ZONE", callback=time_zone, default="UTC", show_default=True,
    help="The brokers' time zone, such as Europe/Berlin.",
)  # fmt: skip
@click.option(
    "--pattern", metavar="PATTERN", default="",
    help="The pattern of the lines in log4j's own language, where it is not recognised.",
)  # fmt: skip
def watch(
    sources: tuple[str, ...], commands: tuple[str, ...], state_file: Path | None,
    metrics: str | None, webhook: str | None, zone: ZoneInfo, pattern: str,
    *, from_end: bool, as_json: bool, otel: bool,
) -> Exit:  # fmt: skip
    """Follow brokers' own logs, and count the rebalances of each group as they happen.

    LOG is a broker's server.log, in any form that `report` reads; it is followed through rotation
    and truncation, from its beginning, and need not be there yet. - is standard input. Whether a
    rebalance was due is not what coordinator lines can show: `groupquake run` judges that. Ends
    with a summary on Ctrl-C, and when standard input was all there was and has ended.
    """
    state = _read_state(state_file)
    counting = Counting(state, zone, pattern)
    files = _followed(sources, state, from_end=from_end)
    pipes = [Pipe(command, command_line(command)) for command in dict.fromkeys(commands)]
    pipes += [Pipe("-")] if any(one in STANDARD_INPUT for one in sources) else []
    if not files and not pipes:
        raise click.UsageError("nothing to watch; give a broker's server.log, - or --command")
    _write_state(state_file, state)  # where that is not possible, say so now
    follower = Follower(counting, files, pipes)
    view, failures, stopped = counting.view(), list[str](), threading.Event()
    with ExitStack() as opened:
        if metrics is not None:
            opened.enter_context(served(metrics, lambda: view))
        if otel:
            opened.enter_context(exported(lambda: view))
        post = opened.enter_context(posting(webhook, failures.append)) if webhook else None
        opened.enter_context(SIGNALS.handling(lambda _: stopped.set()))
        output: Lines | Screen = Lines(as_json=as_json)
        if sys.stdout.isatty() and not as_json:
            output = Screen(opened.enter_context(Live(auto_refresh=False, screen=True)))
        opened.callback(follower.close)
        for batch in follower.batches(stopped.is_set, is_kept=state_file is not None):
            notices = [*batch.notices, *(failures.pop(0) for _ in range(len(failures)))]
            if not batch.is_new and not notices:
                continue
            view = counting.view()
            output.show(batch.events, notices, view)
            for event in batch.events:
                if post is not None and isinstance(event, Storm):
                    post(event)
            _write_state(state_file, state)
    if failures:
        Console.error(*failures)
    if not as_json:
        Console.result(*summary(view))
    return Exit.PASS


def _followed(sources: Sequence[str], state: State, *, from_end: bool) -> dict[str, FollowedFile]:
    """Return the files to follow by their names. Raises UsageError for what cannot be read."""
    paths = [Path(one).absolute() for one in sources if one not in STANDARD_INPUT]
    for path in filter(Path.exists, paths):
        try:
            open_regular(path).close()
        except OSError as error:
            raise click.UsageError(
                f"{path}: {error.strerror}; give a log file, or - for standard input"
            ) from error
    packed = [path for path in paths if path.name.endswith(PACKED)]
    if packed:
        Console.error(f"{packed[0]}: packed files do not grow; `groupquake report` reads them")
    found = {}
    for log, given in logs_of(path for path in paths if path not in packed).items():
        at = state.files.setdefault(str(log), Position())
        found[str(log)] = FollowedFile(log, given, at, from_end=from_end)
        if not log.exists():
            Console.error(f"{log}: not there yet; it is waited for")
    return found


def _read_state(file: Path | None) -> State:
    """Return the state to go on from, if there is one. Raises UsageError for any other file."""
    if file is None or not file.exists():
        return State()
    try:
        return msgspec.json.decode(file.read_bytes(), type=State)
    except (OSError, msgspec.DecodeError, UnicodeError) as error:
        raise click.UsageError(
            f"--state {file}: {error}; give a file that `watch` wrote, or a new one"
        ) from error


def _write_state(file: Path | None, state: State) -> None:
    """Put the state into its file, if there is one: all of it or nothing. Raises UsageError."""
    if file is not None:
        try:
            replace_file(file, msgspec.json.encode(state))
        except OSError as error:
            raise click.UsageError(f"--state {file}: {error.strerror}") from error
