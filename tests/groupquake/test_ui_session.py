"""How a session with Locust's page ends: with nothing left, and as its last run ended."""

import json
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.waiting import until
from tests.groupquake.conftest import Command, arguments, running

Session = Callable[..., "subprocess.Popen[bytes]"]


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url).close()
    except urllib.error.URLError:
        return False
    return True


def start(url: str) -> None:
    """Press Start."""
    form = urllib.parse.urlencode({"user_count": 1, "spawn_rate": 1}).encode()
    with urllib.request.urlopen(f"{url}/swarm", form) as reply:
        content = json.load(reply)
    assert content["success"], content


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def session(small: Path, tmp_path: Path, port: int) -> Iterator[Session]:
    """Starts a page in a process of its own; it is there when this returns."""
    with (tmp_path / "output.txt").open("w") as output, ExitStack() as sessions:

        def begin(*words: object) -> "subprocess.Popen[bytes]":
            process = subprocess.Popen(
                arguments("run", small, "--ui", "--web-port", port, *words),
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            sessions.enter_context(process)
            sessions.callback(process.kill)  # if the test did not end it
            url = f"http://127.0.0.1:{port}"
            assert until(lambda: process.poll() is not None or answers(url), within_s=240)
            assert process.poll() is None, Path(output.name).read_text()
            return process

        yield begin


PROGRAM = """\
    - name: programs
      topics: [orders]
      session_timeout: 8s
      members:
        - kind: dynamic
          count: 1
          client: {{command: [sh, -c, "setsid tail -f {followed} > tail.txt & wait"]}}
"""
"""A group that nobody waits for: what its member starts has a session of its own, and never ends.

(It prints into a file: tail ends by itself when nobody reads what it prints.)"""


@pytest.mark.cluster
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
def test_nothing_outlives_the_page(
    number: signal.Signals, session: Session, small: Path, tmp_path: Path, port: int
) -> None:
    followed = tmp_path / "followed"
    followed.touch()
    text = small.read_text().replace("down_for: 1s}", "down_for: 1m}")
    small.write_text(
        text.replace("steady_state:", f"{PROGRAM.format(followed=followed)}steady_state:")
    )
    journal = tmp_path / "runs" / "latest" / "journal.jsonl"
    process = session()
    start(f"http://127.0.0.1:{port}")
    assert until(lambda: journal.exists() and '"injected"' in journal.read_text(), within_s=120)
    assert any(line.startswith("tail ") for line in running(str(followed)))
    process.send_signal(number)
    code = process.wait(timeout=120)
    assert until(lambda: not running(str(tmp_path)), within_s=60)
    content = [json.loads(line) for line in journal.read_text().splitlines()]
    events = {entry["event"] for entry in content}
    if number == signal.SIGKILL:  # the end of the session or that of its members is seen first
        assert events & {"aborted", "failed"}
    else:
        assert "aborted" in events
    assert content[-1]["event"] == "phase"
    if number == signal.SIGINT:  # the members live until all is healed
        assert code == 4, (tmp_path / "output.txt").read_text()
        healed = {entry["fault_id"] for entry in content if entry.get("healed")}
        assert healed == {entry["fault_id"] for entry in content if entry["event"] == "intent"}


def await_state(port: int, *states: str) -> None:
    """Press Start, and wait until the run is in one of the states."""
    url = f"http://127.0.0.1:{port}"
    start(url)

    def reached() -> bool:
        with urllib.request.urlopen(f"{url}/groupquake/state") as reply:
            return any(run["state"] in states for run in json.load(reply)["runs"])

    assert until(reached, within_s=240)


def test_a_page_from_which_nothing_was_run_opens_in_the_browser_and_ends_well(
    session: Session, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened.txt"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    process = session()
    assert until(lambda: opened.exists() and opened.read_text(), within_s=60)
    assert opened.read_text() == f"http://127.0.0.1:{port}/groupquake/\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0


def test_a_page_ends_as_the_last_run_did(session: Session, port: int) -> None:
    process = session("--kafka", "4.99.0")
    await_state(port, "over")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 3


@pytest.mark.long
@pytest.mark.cluster
def test_a_page_ends_as_its_last_verdict(
    session: Session, small: Path, port: int, tmp_path: Path
) -> None:
    small.write_text(small.read_text().replace("rebalances: 0}", "rebalances: 9}"))
    process = session()
    await_state(port, "over")
    process.send_signal(signal.SIGINT)
    ended = process.wait(timeout=60)
    verdict = json.loads((tmp_path / "runs" / "latest" / "verdict.json").read_text())["verdict"]
    # on a busy machine a count that is not met proves nothing: then it is unknown
    assert ended == {"fail": 1, "unknown": 2}[verdict]


def test_a_run_that_has_hardly_begun_is_ended_with_the_page(session: Session, port: int) -> None:
    process = session()
    await_state(port, "starting", "over")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 4


def test_a_port_in_use(groupquake: Command, small: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        done = groupquake("run", small, "--ui", "--web-port", port)
    assert done.code == 3
    assert f"port {port} on 127.0.0.1 is in use" in done.err
    assert "Traceback" not in done.err


def test_options_that_exclude_the_page(groupquake: Command, small: Path) -> None:
    for option in ("--keep", "--no-report"):
        done = groupquake("run", small, "--ui", option)
        assert done.code == 64
        assert f"{option} cannot be used with --ui" in done.err
    unknown = groupquake("run", "demmo", "--ui")
    assert unknown.code == 64
    assert "did you mean 'demo'?" in unknown.err
