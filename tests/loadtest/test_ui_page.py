"""What Locust's page and its server do for us, asked as a browser asks."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chaos.clusters.ports import free_ports
from tests.loadtest.conftest import Locust

UNTOUCHED = {"user_count": "8", "spawn_rate": "20"}


class Web:
    """The page of a Locust, asked over HTTP."""

    def __init__(self, port):
        self.port = port

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as reply:
            return reply.read().decode()

    def json(self, path):
        return json.loads(self.get(path))

    def start(self, **fields):
        form = urllib.parse.urlencode({**UNTOUCHED, **fields}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/swarm", form) as reply:
            return json.load(reply)

    def pushed(self):
        """Return the first event: the whole state."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/groupquake/events") as reply:
            return json.loads(reply.readline().removeprefix(b"data: "))

    def answers(self):
        try:
            return self.get("/")
        except urllib.error.URLError:
            return None


@pytest.fixture
def web(port):
    return Web(port)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The page of a Locust that was started plainly, for all that starts no run there."""
    web = Web(*free_ports(1))
    child = Locust(tmp_path_factory.mktemp("plain"), "--web-port", str(web.port))
    child.wait_for(web.answers)
    yield web
    child.close()


def listening(port):
    """Return the addresses (hexadecimal, as the kernel has them) that a port listens on."""
    return {
        line.split()[1].partition(":")[0]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    }


def test_the_page_listens_on_the_loopback_by_default(plain):
    assert listening(plain.port) == {"0100007F"}


def test_the_start_form_has_our_options_in_a_useful_order(plain):
    page = plain.get("/")
    places = [
        page.index(f'"{name}":')
        for name in (
            *("experiment", "static_members", "dynamic_members", "session_timeout"),
            *("kafka", "coordinator", "seed"),
        )
    ]
    assert places == sorted(places)
    for name in ("demo", "rolling-bounce"):
        assert f'"{name}"' in page
    assert '"history"' not in page.replace('"history": []', "")
    assert '<script src="/groupquake/static/bar.js">' in page
    assert plain.json("/groupquake/state") == {"runs": [], "marks": []}
    assert plain.pushed()["runs"] == []
    assert "No run yet" in plain.get("/groupquake/")
    for name in ("figure.js", "figure.css", "colours.css"):
        assert plain.get(f"/groupquake/drawing/{name}")


def chosen(web):
    """Return the experiment and the host that the form has at first."""
    form = re.search(r"templateArgs = (.*)", web.get("/"))
    arguments = json.loads(form[1])
    return arguments["extra_options"]["experiment"]["default_value"], arguments["host"]


def test_without_a_cluster_the_form_has_the_demo(plain):
    assert chosen(plain) == ("demo", "its own brokers")


def test_with_a_host_the_load_goes_there(locust, web):
    locust("-H", "127.0.0.1:1", "--web-port", str(web.port)).wait_for(web.answers)
    assert chosen(web) == ("none", "127.0.0.1:1")
    reply = web.start()
    assert not reply["success"]
    assert reply["message"].startswith("no broker answered at 127.0.0.1:1 within 5 s (")
    assert "Connection refused" in reply["message"]


def test_of_three_starts_at_once_one_goes_on(plain):
    with ThreadPoolExecutor(3) as clicks:
        replies = clicks.map(lambda host: plain.start(experiment="none", host=host),
                             ["127.0.0.1:1"] * 3)  # fmt: skip
    messages = sorted(reply["message"] for reply in replies)
    assert messages[:2] == ["a run is starting already"] * 2
    assert messages[2].startswith("no broker answered at 127.0.0.1:1")
    assert plain.json("/stats/requests")["state"] == "ready"


def test_the_form_refuses_a_run_that_cannot_start(plain):
    for fields, error_line in (
        ({"experiment": "demo", "seed": "x"}, "seed: 'x' is not a whole number"),
        ({"experiment": "demo", "session_timeout": "1s"}, "is below what the brokers accept"),
        ({"experiment": "demo", "run_time": "1m"}, "leave the run time empty"),
        ({"experiment": "/etc/passwd.yaml"}, "is not an experiment of the list"),
        ({"static_members": "few"}, "static members: 'few' is no number of members"),
        ({"experiment": "none"}, "a load without an experiment needs a cluster; write its"),
        (
            {"experiment": "none", "host": "h:1", "static_members": "0", "dynamic_members": "0"},
            "no members to run",
        ),
    ):
        reply = plain.start(**fields)
        assert not reply["success"]
        assert error_line in reply["message"]
    assert plain.json("/groupquake/state")["runs"] == []
    assert plain.json("/stats/requests")["state"] == "ready"


def test_only_reports_of_runs_are_handed_out(plain):
    for path in (
        "/groupquake/runs/1/report.html",
        "/groupquake/runs/1/..%2Fjournal.jsonl",
        "/groupquake/drawing/report.css",
    ):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            plain.get(path)


def test_a_master_runs_no_experiment(locust, web):
    at = ("--master-bind-host", "127.0.0.1", "--master-bind-port", "0")
    locust("--master", "-H", "127.0.0.1:1", *at, "--web-port", str(web.port)).wait_for(web.answers)
    reply = web.start(experiment="demo")
    assert not reply["success"]
    assert "the page runs an experiment in one Locust process" in reply["message"]


@pytest.mark.cluster
def test_without_an_experiment_the_live_page_shows_what_clients_saw(locust, web, kafka):
    child = locust("--bootstrap", kafka, "--group", "plain", "--web-port", str(web.port))
    child.wait_for(web.answers)
    assert web.start(static_members="1", dynamic_members="2", session_timeout="6s")["success"]
    assert len(child.wait_joined()) == 3
    live = child.wait_for(lambda: (live_now := web.pushed()["live"]).get("seen") and live_now)
    assert [one["in"] for one in live["members"].values()] == [True] * 3
    assert live["seen"][0]["group"] == "plain"
    assert live["seen"][0]["reason"].startswith("seen by client plain-")
    state = web.json("/groupquake/state")
    assert state["runs"] == []
    assert {(mark["kind"], mark["text"]) for mark in state["marks"]} == {("rebalance", "plain")}
    assert live["plain"]
    assert live["groups"]["plain"]["members"] == 3
    owned = live["groups"]["plain"]["owners"]
    assert len({partition for partitions in owned.values() for partition in partitions}) == 8
