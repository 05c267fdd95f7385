"""`groupquake watch`: rebalances as brokers' logs tell them."""

import sys
import threading
import time
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import ExitStack
from math import inf
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import msgspec
from rich.live import Live

from groupquake.commands.incident import time_zone
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.signals import SIGNALS
from groupquake.timing import FOLLOW_S
from groupquake.watch.counting import Counting, State
from groupquake.watch.files import PACKED, FollowedFile, logs_of
from groupquake.watch.group_counts import Storm
from groupquake.watch.metrics import exported, served
from groupquake.watch.pipes import STANDARD_INPUT, Pipe
from groupquake.watch.screen import as_lines, as_text, drawing
from groupquake.watch.webhook import posting
from reports.ingest.gathered import STDIN
from scenarios.regular_files import open_regular, replace_file

NEWS = 5
"""How many of the last storms and notices the screen shows."""
_BEGIN = msgspec.json.encode(State()).partition(b",")[0]
"""How a file begins that has a state."""


@click.command()
@click.argument(
    "sources", metavar="[LOG|-]…", nargs=-1, type=click.Path(dir_okay=False, allow_dash=True)
)
@click.option(
    "--command", "commands", metavar="COMMAND", multiple=True,
    help="Follow what a command writes, such as 'kubectl logs -f kafka-0'; it is started again"
    " when it ends. Any number.",
)  # fmt: skip
@click.option(
    "--state", "state_file", metavar="FILE", type=click.Path(path_type=Path),
    help="Keep counts there, and go on from them.",
)  # fmt: skip
@click.option(
    "--metrics", metavar="[HOST:]PORT",
    help="Serve /metrics for Prometheus, by default to this machine alone.",
)  # fmt: skip
@click.option("--otel", is_flag=True, help="Export metrics by OpenTelemetry (OTEL_… variables).")
@click.option("--webhook", metavar="URL", help="POST each storm there, as JSON.")
@click.option(
    "--time-zone", "zone", metavar="ZONE", type=time_zone, default="UTC", show_default=True,
    help="The brokers' time zone, such as Europe/Berlin.",
)  # fmt: skip
@click.option(
    "--pattern", metavar="PATTERN", default="",
    help="The pattern of the lines in log4j's own language, where it is not recognised.",
)  # fmt: skip
def watch(
    sources: tuple[str, ...], commands: tuple[str, ...], state_file: Path | None,
    metrics: str | None, webhook: str | None, zone: ZoneInfo, pattern: str, *, otel: bool,
) -> Exit:  # fmt: skip
    """Follow brokers' own logs, and count the rebalances of each group as they happen.

    LOG is a broker's server.log, in any form that `report` reads; it is followed through rotation
    and truncation, from its beginning, and need not be there yet. - is standard input. Whether a
    rebalance was due is not what coordinator lines can show: `groupquake run` judges that. Ends
    with a summary on Ctrl-C, and when standard input was all there was and has ended.
    """
    state = _read_state(state_file)
    counting, notices = Counting(state, zone, pattern), list[str]()
    pipes = dict.fromkeys([STANDARD_INPUT] * any(one in STDIN for one in sources) + [*commands])
    logs = [one for one in sources if one not in STDIN and not one.endswith(PACKED)]
    _require_readable(logs, pipes)
    heard = counting.begins, notices.append
    followed: list[FollowedFile | Pipe] = [
        *(FollowedFile(*log, state.written_ns, *heard) for log in logs_of(logs).items()),
        *(Pipe(one, *heard) for one in pipes),
    ]
    if not followed:
        raise click.UsageError(
            "nothing to watch; give a broker's server.log (not packed), - or --command"
        )
    _write_state(state_file, state)  # where that is not possible, say so now
    view, stopped, news = counting.view(), threading.Event(), deque[str](maxlen=NEWS)
    with ExitStack() as opened:
        if metrics is not None:
            opened.enter_context(served(metrics, lambda: view))
        if otel:
            opened.enter_context(exported(lambda: view))
        post = opened.enter_context(posting(webhook, notices.append)) if webhook else None
        opened.enter_context(SIGNALS.handling(lambda _: stopped.set()))
        live = Live(auto_refresh=False, screen=True) if sys.stdout.isatty() else None
        if live is not None:
            opened.enter_context(live)
        for source in followed:
            opened.callback(source.close)
        is_kept = state_file is not None
        for storms, is_new in _batches(followed, counting, stopped, is_kept=is_kept):
            if not is_new and not notices:
                continue
            view = counting.view()
            said = [notices.pop(0) for _ in range(len(notices))]
            if post is not None:
                for storm in storms:
                    post(storm)
            if live is not None:
                news += [*map(as_text, storms), *said]
                live.update(drawing(view, news, live.console.height), refresh=True)
            else:
                _print(map(as_text, storms), said)
            _write_state(state_file, state)
    _print(as_lines(view), notices)
    return Exit.PASS


def _require_readable(logs: Iterable[str], pipes: Container[str]) -> None:
    if sys.stdin is None and STANDARD_INPUT in pipes:
        raise click.UsageError("-: standard input is closed")
    if odd := [one for one in logs if Path(one).exists() and not Path(one).is_file()]:
        raise click.UsageError(f"{odd[0]}: not a regular file; give a pipe as - or by --command")


def _print(results: Iterable[str], notices: Iterable[str]) -> None:
    for line in results:
        Console.result(line)
    for line in notices:
        Console.error(line)


def _batches(
    sources: Sequence[FollowedFile | Pipe], counting: Counting, stopped: threading.Event,
    *, is_kept: bool,
) -> Iterator[tuple[list[Storm], bool]]:  # fmt: skip
    """Yield the storms in what has come, and whether anything has, until nothing more can come.

    What is pending when it is stopped counts at once, unless it `is_kept` for another one.
    """
    ends = False
    while not ends:
        is_stopped, now_s, has_read = stopped.is_set(), time.monotonic(), False
        was_pending = bool(counting.state.pending)
        for source in sources:
            if texts := source.read(now_s):
                counting.take(source.name, texts, now_s)
                has_read = True
        is_over = all(source.is_over for source in sources)
        all_counts = is_over or (is_stopped and not is_kept)
        yield counting.settle(inf if all_counts else now_s), has_read or was_pending
        ends = is_over or is_stopped
        if not has_read and not ends:
            time.sleep(FOLLOW_S)


def _read_state(file: Path | None) -> State:
    """Return the state to go on from, if there is one. Raises UsageError for any other file."""
    if file is None:
        return State()
    try:
        with open_regular(file) as kept:
            text = kept.read()
        # msgspec asks for no tag where only one type may come
        return msgspec.json.decode(text if text.startswith(_BEGIN) else b"", type=State)
    except FileNotFoundError:
        return State()
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
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
