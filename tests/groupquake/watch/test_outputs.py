"""What is counted, on a screen, as metrics, and posted."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from groupquake.watch.counting import Counting
from groupquake.watch.metrics import exported, served
from groupquake.watch.screen import drawing
from groupquake.watch.webhook import posting
from tests.groupquake.watch.outputs_here import STORM, counted
from tests.groupquake.whole_run.collector import Collector

COUNTED = {
    ("groupquake_group_rebalances_total", "g", "leave"): 5,
    ("groupquake_member_rebalances_total", "g", "app"): 5,
    ("groupquake_group_storms_total", "g"): 1,
    ("groupquake_group_generation", "g"): 4,
    ("groupquake_watch_lines_total", "used"): 5,
    ("groupquake_watch_lines_total", "irrelevant"): 1,
}


@pytest.fixture(scope="module")
def counting() -> Counting:
    return counted()


def test_prometheus_reads_the_metrics(counting: Counting) -> None:
    with served("127.0.0.1:0", counting.view) as port:
        text = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    families = [*text_string_to_metric_families(text)]
    assert {
        (
            sample.name,
            *(sample.labels[name] for name in sorted(sample.labels, reverse=True)),
        ): sample.value
        for family in families
        for sample in family.samples
    } == COUNTED
    assert all(family.documentation for family in families)


def test_a_collector_of_opentelemetry_gets_the_same(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = Collector()
    with collector.serving() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with exported(counting.view):
            pass  # the last export is at the end
    points = {(name, *labels.values()): value for name, labels, value in collector.points()}
    assert points == {
        (name.removesuffix("_total"), *labels): value for (name, *labels), value in COUNTED.items()
    }


def test_a_screen_of_80_columns_has_all_of_a_group(counting: Counting) -> None:
    terminal = Console(file=io.StringIO(), width=80)
    terminal.print(drawing(counting.view(), ["an event", "x.log: a\nnotice"], 10))
    text = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    (row,) = (line.split() for line in text.splitlines() if line.startswith("g "))
    assert row == ["g", "leave", "5", "app", "5", "5", "4", "now", "1"]
    assert "6 lines read: 1 irrelevant, 5 used" in text
    assert "an event" in text
    assert "x.log: a\\nnotice" in text
    assert "Whether a rebalance was due is not known" in text


class Hook(BaseHTTPRequestHandler):
    got: list[object]

    def do_POST(self) -> None:
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def hook() -> Iterator[tuple[str, list[object]]]:
    got: list[object] = []
    with HTTPServer(("127.0.0.1", 0), type("Its", (Hook,), {"got": got})) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/storms", got
        server.shutdown()
        thread.join()


def test_a_storm_is_posted() -> None:
    failed: list[str] = []
    with hook() as (url, got), posting(url, failed.append) as post:
        post(STORM)
    assert failed == []
    assert got == [
        {
            "event": "storm", "group": "g", "from_ms": 0.0, "until_ms": 8000.0,
            "rebalances": 5, "clients": ["app"],
        }
    ]  # fmt: skip


def test_a_webhook_that_is_down_costs_one_sentence() -> None:
    with hook() as (url, _):
        pass
    failed: list[str] = []
    with posting(url, failed.append) as post:
        post(STORM)
    (sentence,) = failed
    assert url in sentence
    assert "refused" in sentence
