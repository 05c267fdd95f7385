"""A master and its workers over messages that a small bus carries in Locust's place."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from loadtest.configs import ClientConfigs, MemberConfig, ProducerConfig
from loadtest.errors import LoadtestError, WorkerGoneError
from loadtest.history import History, now_ms
from loadtest.workers.master import LoadMaster
from loadtest.workers.worker import LoadWorker


def member(name: str) -> MemberConfig:
    times = (1_000, 1_000, 1_000, 1_000)
    return MemberConfig(name, "g", "static", name, ("orders",), "range", *times)


CONFIGS = ClientConfigs((member("a"), member("b")), (ProducerConfig("p", "orders", 5.0),))


class Bus:
    """The runners of Locust: it hands messages on, through JSON; `lost` ones never arrive."""

    def __init__(self) -> None:
        self.listeners: dict[str, dict[str, Any]] = defaultdict(dict)
        self.clients: dict[str, SimpleNamespace] = {}
        self.lost: set[str] = set()
        self.events = SimpleNamespace(
            worker_connect=SimpleNamespace(add_listener=self._on_connect),
            heartbeat_sent=SimpleNamespace(add_listener=lambda _: None),
        )

    def _on_connect(self, listener: Any) -> None:
        self._connected = listener

    def get_worker_index(self, id_: str) -> int:
        return int(id_.rpartition("_")[2])

    def register_message(self, message: str, listener: Any, **_: Any) -> None:
        self.listeners["master"][message] = listener

    def send_message(self, message: str, data: Any = None, client_id: str | None = None) -> None:
        for id_ in self.clients if client_id is None else [client_id]:
            self.hand("master", id_, message, data)

    def hand(self, sender: str, receiver: str, message: str, data: Any) -> None:
        if message not in self.lost:
            msg = SimpleNamespace(node_id=sender, data=json.loads(json.dumps(data)))
            gevent.spawn(self.listeners[receiver][message], environment=None, msg=msg)

    def worker(self, id_: str) -> Any:
        self.clients[id_] = SimpleNamespace(state="ready", heartbeat=3)
        self._connected(client_id=id_)
        return self.unconnected(id_)

    def unconnected(self, id_: str) -> Any:
        """Return a worker that connected to another master."""
        return SimpleNamespace(
            register_message=lambda message, listener, **_: self.listeners[id_].update(
                {message: listener}
            ),
            send_message=lambda message, data: self.hand(id_, "master", message, data),
        )


class Load:
    """A master and two workers on one bus."""

    def __init__(self, folder: Path, *, stay: bool = True) -> None:
        self.bus = Bus()
        self.crashed: list[str] = []
        self.file = folder / "history.jsonl"
        self.master = LoadMaster(self.bus, self.bus.events, stay=stay)  # type: ignore[arg-type]
        self.history = History(self.file)
        self.master.begin(CONFIGS, self.history)
        self.ids = ("host_0", "host_1")
        self.workers = [self._worker(folder, id_, self.bus.worker(id_)) for id_ in self.ids]
        self.histories = [History(worker.begin(self._commands())) for worker in self.workers]

    def _worker(self, folder: Path, id_: str, runner: Any) -> LoadWorker:
        end, crash = lambda: self.end_worker(id_), lambda: self.crashed.append(id_)
        return LoadWorker(runner, folder, end, crash)

    def of_an_earlier_run(self, folder: Path, id_: str) -> LoadWorker:
        return self._worker(folder, id_, self.bus.unconnected(id_))

    def end_worker(self, id_: str) -> None:
        number = int(id_.rpartition("_")[2])
        self.histories[number].close()
        self.workers[number].end()

    def close(self) -> None:
        for id_ in self.ids:
            self.end_worker(id_)
        self.history.close()

    def _commands(self) -> dict[str, Any]:
        number = len(self.bus.clients)

        def stop(request: dict[str, Any]) -> Any:
            if request["member"] == "b":
                raise LoadtestError("it will not")
            return {"stopped": request["member"], "on": number}

        return {"stop": stop, "members": lambda _: [], "start": lambda _: gevent.sleep(60)}

    def lose(self, id_: str) -> None:
        del self.bus.clients[id_]  # as when Locust has forgotten it
        self.await_lines(len(self.of("worker_lost")) + 1, "worker_lost")

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def of(self, *events: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["event"] in events]

    def await_lines(self, count: int, event: str) -> None:
        with gevent.Timeout(20):
            while len(self.of(event)) < count:
                gevent.sleep(0.01)


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    with closing(Load(tmp_path)) as load:
        yield load


def test_a_client_is_leased_once_over_all_workers_with_all_that_it_needs(load: Load) -> None:
    first, second = load.workers
    assert [first.lease("static"), second.lease("static")] == list(CONFIGS.members)
    assert [first.lease("static"), second.lease("static")] == [None, None]
    assert second.lease("producer") == CONFIGS.producers[0]
    first.release("a")
    gevent.sleep(0)
    assert second.lease("static") == CONFIGS.members[0]
    second.release("b")
    first.release("a")  # the other worker has it now
    gevent.sleep(0)
    assert [first.lease("static"), first.lease("static")] == [CONFIGS.members[1], None]


def test_a_user_that_ends_as_it_is_given_a_client_returns_it(load: Load) -> None:
    user = gevent.spawn(load.workers[0].lease, "static")
    gevent.sleep(0)
    user.kill()
    gevent.sleep(0.05)
    assert load.workers[1].lease("static") == CONFIGS.members[0]


def test_a_client_that_comes_just_as_the_wait_for_it_ends_is_not_lost(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadtest.workers.worker.LEASE_ANSWER_S", 0.1)
    load.bus.lost = {"groupquake-lease"}
    leased = load.bus.listeners["host_0"]["groupquake-leased"]

    def answer() -> None:
        gevent.sleep(0.05)
        data = {"number": 1, "client": asdict(CONFIGS.members[0])}
        leased(environment=None, msg=SimpleNamespace(data=data))

    user = gevent.spawn(load.workers[0].lease, "static")
    gevent.spawn(answer)
    gevent.sleep(0)
    time.sleep(0.2)  # the hub is late: it runs the answer and the end of the wait in one go
    assert user.get() == CONFIGS.members[0]


def test_a_command_goes_to_the_worker_that_has_the_member(load: Load) -> None:
    load.workers[0].lease("static")
    load.workers[1].lease("static")
    assert load.master.forward({"do": "stop", "member": "a"})["stopped"] == "a"
    with pytest.raises(LoadtestError, match="it will not"):
        load.master.forward({"do": "stop", "member": "b"})
    load.workers[0].release("a")
    gevent.sleep(0)
    with pytest.raises(LoadtestError, match="no user runs 'a' now"):
        load.master.forward({"do": "stop", "member": "a"})
    with pytest.raises(LoadtestError, match="no member is called 'nobody'"):
        load.master.forward({"do": "stop", "member": "nobody"})


def test_the_history_of_all_workers_comes_whole(load: Load) -> None:
    load.workers[0].lease("static")
    for number, history in enumerate(load.histories):
        for _ in range(3):
            history.write("created", member=f"m{number}")
    load.master.stop_workers()
    assert load.master.missing() == []
    assert sorted(line["member"] for line in load.of("created")) == ["m0"] * 3 + ["m1"] * 3


def test_a_batch_that_never_came_is_named(load: Load) -> None:
    load.workers[0].lease("static")
    load.bus.lost = {"groupquake-history"}
    load.histories[0].write("created", member="m")
    load.master.stop_workers()
    assert load.master.missing() == [
        "the history of worker-0 (host) is not whole: lines 1 are missing"
    ]


def test_a_worker_whose_clock_is_off_is_named(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadtest.workers.worker.now_ms", lambda: now_ms() - 60_000)
    load.workers[0].lease("static")
    load.histories[0].write("created", member="a")
    load.histories[1].write("created", member="b")  # this worker has no client
    load.master.stop_workers()
    [problem] = load.master.missing()
    assert problem.startswith("the clock of worker-0 (host) seems 6")
    assert problem.endswith(" ms behind the master's")


def test_a_lost_worker_fails_its_commands_at_once_and_its_members_are_killed(load: Load) -> None:
    load.workers[0].lease("static")
    load.workers[1].lease("static")
    load.histories[0].write("created", member="a")
    waiting = gevent.spawn(load.master.forward, {"do": "start", "member": "a"})
    gevent.sleep(0.5)
    load.lose("host_0")
    with pytest.raises(WorkerGoneError, match=r"worker-0 \(host\) is gone since"):
        waiting.get(timeout=5)
    with pytest.raises(WorkerGoneError):
        load.master.forward({"do": "stop", "member": "a"})
    assert load.workers[1].lease("static") is None, "nobody gets its members"
    states = {row["name"]: row["state"] for row in load.master.members()}
    assert states == {"a": "killed", "b": "stopped"}
    assert load.of("worker_lost")[0]["members"] == ["a"]
    load.master.stop_workers()
    assert load.of("killed") == []
    load.master.close()
    [lost, not_whole] = load.master.missing()
    assert lost.startswith("worker-0 (host) was lost at ")
    assert lost.endswith(", with a")
    assert "it did not say how many lines it wrote" in not_whole
    [killed] = load.of("killed")
    assert (killed["member"], killed["at_ms"]) == ("a", load.of("worker_lost")[0]["last_heard_ms"])
    load.master.close()
    assert len(load.of("killed")) == 1


LIVES = {
    "never ran": ((), "stopped", []),
    "was closed": (("created a", "closed a"), "stopped", []),
    "was fenced": (("created a", "fenced a"), "fenced", []),
    "runs, and its duplicate": (("created a", "created dup"), "killed", ["a", "a.duplicate"]),
    "runs, its duplicate was killed": (
        ("created a", "created dup", "killed dup"), "killed", ["a", "a.duplicate"]
    ),
}  # fmt: skip
"""What a member was seen to do, what it is without its worker, and whose end the history has."""


@pytest.mark.parametrize("life", LIVES)
def test_who_runs_is_killed_with_its_worker_once(load: Load, life: str) -> None:
    events, state, killed = LIVES[life]
    load.workers[0].lease("static")
    for event, name in map(str.split, events):
        load.histories[0].write(event, member={"dup": "a.duplicate"}.get(name, name))
    if events:
        last, _ = events[-1].split()
        load.await_lines(sum(event.startswith(last) for event in events), last)
    load.lose("host_0")
    for _ in range(2):
        load.master.close()
    assert load.master.members()[0]["state"] == state
    assert sorted(line["member"] for line in load.of("killed")) == killed


def test_members_of_a_worker_that_does_not_answer_are_unknown(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadtest.workers.master.ROWS_ANSWER_S", 0.1)
    load.workers[0].lease("static")
    load.bus.lost = {"groupquake-answer"}
    assert [row["state"] for row in load.master.members()] == ["unknown", "stopped"]


def test_a_worker_that_is_lost_stays_lost_and_ends_once_it_hears_that(load: Load) -> None:
    load.workers[0].lease("static")
    load.lose("host_0")
    with gevent.Timeout(20):
        while load.crashed != ["host_0"]:
            gevent.sleep(0.01)
    load.bus.clients["host_0"] = SimpleNamespace(state="running", heartbeat=3)
    assert load.workers[1].lease("static") == CONFIGS.members[1]
    load.workers[1].release("b")
    with gevent.Timeout(0.5, False):
        assert load.workers[0].lease("static") is None, "it gets no other"
    load.workers[0].release("a")
    gevent.sleep(0.5)
    assert load.crashed[1:], "it hears so again"
    assert load.bus.clients.keys() == {"host_1"}
    with pytest.raises(WorkerGoneError):
        load.master.forward({"do": "stop", "member": "a"})
    assert len(load.of("worker_lost")) == 1


@pytest.mark.parametrize("sends", ["history", "history-end", "lease", "release", "answer"])
def test_a_worker_of_an_earlier_run_ends_and_has_no_part_in_this_one(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sends: str
) -> None:
    monkeypatch.setattr("loadtest.workers.worker.LEASE_ANSWER_S", 0.1)
    load.workers[0].lease("static")
    former = load.of_an_earlier_run(tmp_path, "host_9")
    match sends:
        case "history":
            history = History(former.begin({}))
            history.write("created", member="a")
            history.close()
            gevent.sleep(0.5)
        case "history-end":
            former.begin({})
            former.end()
        case "lease":
            assert former.lease("static") is None
        case "release":
            former.release("a")
        case "answer":
            answer = {"number": 1, "reply": {"ok": True, "result": "no"}}
            waiting = gevent.spawn(load.master.forward, {"do": "stop", "member": "a"})
            load.bus.hand("host_9", "master", "groupquake-answer", answer)
            assert waiting.get()["stopped"] == "a"
    gevent.sleep(0.1)
    assert load.crashed == ["host_9"]
    assert load.of("created") == []
    assert [line["member"] for line in load.of("leased")] == ["a"]
    assert load.workers[1].lease("static") == CONFIGS.members[1], "its lease is free"
    load.master.stop_workers()
    assert load.master.missing() == []


def test_a_worker_may_connect_before_the_load_is_there(tmp_path: Path) -> None:
    load = Load(tmp_path)
    late = LoadMaster(load.bus, load.bus.events, stay=True)  # type: ignore[arg-type]
    late.begin(CONFIGS, load.history)
    assert load.workers[0].lease("static") == CONFIGS.members[0]
    load.close()


def test_without_an_experiment_others_get_the_members_of_a_lost_worker(tmp_path: Path) -> None:
    load = Load(tmp_path, stay=False)
    load.workers[0].lease("static")
    load.workers[1].lease("static")
    load.bus.clients["host_0"].state = "missing"
    gevent.sleep(0.6)
    assert load.workers[1].lease("static") is None, "they may run there still"
    load.lose("host_0")
    assert load.workers[1].lease("static") == CONFIGS.members[0]
    load.close()
