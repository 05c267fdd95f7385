"""Members that are programs, for which `stand_in.py` stands in. Each test has its own process."""

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import gevent
import pytest
from gevent import monkey

import loadtest.members.program as module
from groupquake import load_process
from groupquake.access import require_allowed
from groupquake.exits import NotAuthorizedError
from loadtest.configs import MemberConfig
from loadtest.errors import LoadtestError
from loadtest.history import History, now_ms
from loadtest.members.member import Member
from loadtest.members.program import DEAD, STOPPED, ProgramClient, is_within, users_environment
from loadtest.members.wire import WireClient
from loadtest.wire import Connection
from tests.loadtest.children import in_child

STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in.py"))]
PROGRAM = " ".join(STAND_IN)
SECURED = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "${env:ALICES_PASSWORD}",
}


class Programs:
    """Members whose clients are programs, and their history."""

    def __init__(self, folder, command):
        self.folder, self.command = folder, tuple(command)
        self.history = History(folder / "history.jsonl")

    def config(self, name, instance_id="app-1"):
        kind = "static" if instance_id else "dynamic"
        times = (6_000, 500, 60_000, 1_000, 2_000)
        topics = ("t", "u")
        return MemberConfig(
            name, "g", kind, instance_id, topics, "range", *times, "command", self.command
        )

    def member(self, config, client=ProgramClient, bootstrap="127.0.0.1:1"):
        start = lambda one: client(one, bootstrap)
        return Member(config, start, self.history, lambda _: lambda *_, **__: None)

    def opened(self, name, state="joined"):
        """Return a member that a user opened, and polled until it was in a state."""
        one = self.member(self.config(name))
        one.open()
        self.polled(one, state)
        return one

    def polled(self, one, state):
        def reached():
            one.poll_once()
            return one.state == state

        until(reached)


def until(condition):
    with gevent.Timeout(30):
        while not condition():
            gevent.sleep(0.01)


def refusal(call, *arguments):
    """Return what is said of a call that is refused."""
    with pytest.raises(LoadtestError) as refused:
        call(*arguments)
    return str(refused.value)


def called(scene, folder, command):
    return scene(Programs(folder, command))


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Let programs play a scene; returns its result, and what the history has of it."""
    for required in ("GROUPQUAKE_BROWSER_REQUIRED", "GROUPQUAKE_DOCKER_REQUIRED"):
        monkeypatch.delenv(required, raising=False)  # CI sets them for the tests themselves
    (tmp_path / "programs.json").write_text(json.dumps({"folder": str(tmp_path), "commands": {}}))
    own = [*STAND_IN, "--to={bootstrap}", "{group}/{instance_id}", "{x}"]

    def play(scene, command=own):
        result = in_child(called, scene, tmp_path, command)
        lines = list(map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines()))
        return SimpleNamespace(
            result=result,
            lines=lines,
            events=[line["event"] for line in lines],
            # what it prints after its assignment may be read before it is closed, or afterwards
            life=[line["event"] for line in lines if line["event"] not in ("committed", "error")],
            errors=[line["error"] for line in lines if "error" in line],
        )

    return play


def opened_and_closed_twice(programs):
    one = programs.opened("m")
    one.open()
    until(lambda: "fenced" in (programs.folder / "history.jsonl").read_text())
    up = one.row()
    one.close()
    one.close()
    return up, one.row()


def test_a_program_is_told_its_identity_and_closes_cleanly(play, tmp_path):
    seen = play(opened_and_closed_twice)
    up, down = seen.result
    row = {"name": "m", "group": "g", "kind": "static", "instance_id": "app-1", "member_id": None}
    assert up == {**row, "state": "joined", "partitions": ["t-0", "t-1"], "joins": 1}
    assert down == {**row, "state": "stopped", "partitions": [], "joins": 1}
    assert {line["kind"] for line in seen.lines} == {"static"}
    assert [(line["event"], line.get("partitions")) for line in seen.lines] == [
        ("created", None), ("assigned", ["t-0", "t-1"]), ("committed", None), ("error", None),
        ("closing", None), ("revoked", ["t-1"]), ("closed", ["t-0"]),
    ]  # fmt: skip
    assert (seen.lines[2]["offsets"], seen.errors) == (1, ["commit: fenced"])
    log = (tmp_path / "members" / "m.log").read_text().splitlines()
    assert log[:2] == ["what the runtime itself has to say", '{"name":"partitions_assigned"}']
    startup, *_, last = map(json.loads, log[2:])
    assert last["name"] == "shutdown_complete"
    assert startup["arguments"] == ["--to=127.0.0.1:1", "g/app-1", "{x}"]
    given = {key.removeprefix("GROUPQUAKE_"): value for key, value in startup["given"].items()}
    assert given == {
        "BOOTSTRAP": "127.0.0.1:1", "GROUP": "g", "PROTOCOL": "classic", "ASSIGNOR": "range",
        "CLIENT_ID": "m", "INSTANCE_ID": "app-1", "TOPIC": "t", "TOPICS": "t,u",
        "SESSION_TIMEOUT_MS": "6000", "HEARTBEAT_INTERVAL_MS": "500",
        "MAX_POLL_INTERVAL_MS": "60000", "COMMIT_INTERVAL_MS": "1000",
        "METADATA_MAX_AGE_MS": "2000", "CLIENT_PROPERTIES": "",
        "JAVA_ASSIGNOR": "org.apache.kafka.clients.consumer.RangeAssignor",
        "PROPERTIES": str(tmp_path / "members" / "m.properties"), "RUN_FOLDER": str(tmp_path),
    }  # fmt: skip
    assert sorted(startup["properties"].splitlines()) == sorted([
        "bootstrap.servers=127.0.0.1:1", "group.id=g", "client.id=m",
        "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor",
        "session.timeout.ms=6000", "heartbeat.interval.ms=500", "max.poll.interval.ms=60000",
        "metadata.max.age.ms=2000", "auto.commit.interval.ms=1000", "group.instance.id=app-1",
    ])  # fmt: skip


def read_until_nothing_is_owned(name, programs):
    one = programs.opened(name)
    until(lambda: not one.row()["partitions"])
    one.kill()


def processed(seen):
    """Return what was processed, and the events that such lines have to precede."""
    around = ("processed", "committed", "revoked", "killed")
    told = [line for line in seen.lines if line["event"] in around]
    return [line.get("ranges", line["event"]) for line in told]


def test_what_a_program_processed_stands_before_what_it_committed_and_gave_up(play):
    assert processed(play(partial(read_until_nothing_is_owned, "reads"))) == [
        "committed", {"t-0": [[0, 4]], "t-1": [[1, 4]]}, "committed",
        {"t-0": [[5, 5], [7, 7]]}, "revoked", "killed",
    ]  # fmt: skip


def test_records_that_a_program_shows_count_once_and_their_numbers_are_read(play):
    seen = play(partial(read_until_nothing_is_owned, "shows"))
    assert processed(seen) == ["committed", {"t-0": [[0, 3]]}, "revoked", "killed"]
    [wrong] = [line for line in seen.lines if line["event"] == "misnumbered"]
    of_record = ("partition", "offset", "producer", "expected", "found")
    assert [wrong[key] for key in of_record] == ["t-0", 2, "p@1790000000000", 3, 4]


def killed_and_made_dynamic(programs):
    one = programs.opened("m")
    is_up = refusal(one.change_identity, None)
    one.kill()
    is_down = refusal(one.kill)
    one.change_identity(None)
    one.open()
    programs.polled(one, "joined")
    one.kill()
    return is_up, is_down


def test_a_program_is_killed_and_restarts_with_another_identity(play, tmp_path):
    seen = play(killed_and_made_dynamic)
    assert seen.result == (
        "'m' is up as app-1; stop or kill it before you start it with another identity",
        "'m' is killed and has no client; start it first",
    )
    ends = [(line["event"], line["kind"]) for line in seen.lines]
    assert [end for end in ends if end[0] in ("created", "killed")] == [
        ("created", "static"), ("killed", "static"), ("created", "dynamic"), ("killed", "dynamic")
    ]  # fmt: skip
    assert "group.instance.id" not in (tmp_path / "members" / "m.properties").read_text()


def ended_by_itself_twice(programs):
    one = programs.opened("ends", "failed")
    one.open()
    programs.polled(one, "failed")
    one.open()
    one.kill()


SAID = "its process has ended by itself, exit code {}; last in members/ends.log: {}"


def test_a_program_that_ends_by_itself_is_reported_and_reopened(play):
    seen = play(ended_by_itself_twice)
    once = ["created", "assigned", "committed", "error", "killed", "ended"]
    assert seen.events[:13] == [*once, *once, "created"]
    exited, killed = (line for line in seen.lines if line["event"] == "ended")
    assert (exited["exit_code"], killed["exit_code"]) == (1, -9)
    cut = "!" * (200 - len("ValueError: bad record ."))
    assert exited["error"].startswith(SAID.format(1, "'"))
    assert rf"'Traceback: \x1b[31m' | 'ValueError: bad record é{cut}'" in exited["error"]
    assert killed["error"].startswith(SAID.format(-9, ""))
    assert "ValueError" not in killed["error"], "that is of the process before"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sh", "-c", "exit 0"], SAID.format(0, "nothing")),
        (["./script"], SAID.format(1, "'{script} cannot be run: No such file or directory'")),
    ],
    ids=["silent", "no interpreter"],
)
def test_a_program_without_last_words_is_reported(play, tmp_path, command, said):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert play(ended_by_itself_twice, command).errors[0] == said.format(script=script)


def held_and_resumed(programs):
    polls = programs.folder / "polls"
    one = programs.opened("talks")
    until(polls.exists)
    one.carry_out({"do": "stop-polling"})
    before = -1
    while before != polls.stat().st_size:
        before = polls.stat().st_size
        gevent.sleep(0.5)
    one.carry_out({"do": "pause"})
    one.carry_out({"do": "resume"})
    until(lambda: polls.stat().st_size > before + 100)
    one.carry_out({"do": "stop-polling"})
    one.close()
    return before > 0, one.state


def test_a_program_polls_no_more_while_nobody_reads_what_it_prints(play, tmp_path):
    seen = play(held_and_resumed)
    assert seen.result == (True, "stopped")
    assert seen.events[-1] == "closed"
    log = (tmp_path / "members" / "talks.log").read_text().splitlines()
    assert all(json.loads(line) for line in log[2:]), "nothing is added to what it prints"


def paused_and_closed(programs):
    one = programs.opened("m")
    state = lambda: Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()[0]
    one.carry_out({"do": "pause"})
    assert state() == "T"
    one.carry_out({"do": "resume"})
    until(lambda: state() != "T")
    one.carry_out({"do": "pause"})
    one.close()


def test_a_paused_program_goes_on_and_a_paused_one_can_be_closed(play):
    assert play(paused_and_closed).life[-3:] == ["closing", "revoked", "closed"]


def opened_and_closed(name, programs):
    one = programs.opened(name)
    one.close()
    return one.state


@pytest.mark.parametrize(
    "shell",
    [f"trap 'exit 0' TERM; {PROGRAM} & wait", f"{PROGRAM}; echo over"],
    ids=["hands no signal on", "ends at once"],
)
def test_a_clean_close_waits_for_what_a_shell_started(play, shell):
    """The program takes a second to leave."""
    *_, revoked, closed = play(partial(opened_and_closed, "slow"), ["sh", "-c", shell]).lines
    assert (revoked["event"], revoked["partitions"]) == ("revoked", ["t-1"])
    assert (closed["event"], closed["partitions"]) == ("closed", ["t-0"])


def closed_though_it_is_deaf(programs):
    module.PROGRAM_CLOSE_S = 0.3
    return opened_and_closed("deaf", programs)


def test_a_program_that_does_not_close_in_time_is_killed(play):
    seen = play(closed_though_it_is_deaf)
    assert seen.result == "stopped"
    assert seen.life[-2:] == ["closing", "killed"]


def closed_after_its_crash(programs):
    one = programs.opened("m")
    process_id = one.pid  # asked once: who asks later collects what has ended
    os.kill(process_id, signal.SIGKILL)
    os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOWAIT)
    one.close()
    return one.state


closed_in_a_crash = partial(opened_and_closed, "crashes")


@pytest.mark.parametrize(
    ("scene", "last", "said"),
    [
        (closed_after_its_crash, ["killed", "ended"], "has ended by itself, exit code -9; last in"),
        (closed_in_a_crash, ["closing", "killed"], "crashed as it closed, exit code -6"),
    ],
    ids=["before", "meanwhile"],
)
def test_a_program_that_crashes_has_not_closed(play, scene, last, said):
    seen = play(scene)
    assert seen.result == "stopped"
    assert seen.life[-2:] == last
    assert "closed" not in seen.events
    assert seen.errors[-1].startswith(f"its process {said}")


def started_late(programs):
    begun_ms = []

    class Late(module.subprocess.Popen):
        def __init__(self, *words, **more):
            begun_ms.append(now_ms())
            super().__init__(*words, **more)

    module.subprocess.Popen = Late
    one = programs.member(programs.config("m"))
    one.open()
    one.kill()
    return begun_ms[0]


def test_a_program_is_created_before_its_process_runs(play):
    seen = play(started_late)
    assert seen.events[0] == "created"
    assert seen.lines[0]["at_ms"] <= seen.result


def killed_without_what_escaped(programs):
    one, sleeper = programs.opened("m"), programs.folder / "sleeper"
    until(lambda: sleeper.exists() and sleeper.read_text().strip())
    began_ms = now_ms()
    one.kill()
    ended_ms = now_ms()
    os.kill(int(sleeper.read_text()), signal.SIGKILL)
    return began_ms, ended_ms


def test_what_a_program_started_in_another_session_holds_nothing_up(play):
    shell = f"setsid sh -c 'echo $$ > sleeper; exec sleep 60' & exec {PROGRAM}"
    seen = play(killed_without_what_escaped, ["sh", "-c", shell])
    began_ms, ended_ms = seen.result
    assert ended_ms - began_ms < 30_000
    killed = seen.lines[-1]
    assert (killed["event"], killed["partitions"]) == ("killed", ["t-0", "t-1"])
    assert began_ms <= killed["at_ms"] <= ended_ms


def failed(programs):
    one = programs.opened("fails")
    until(lambda: one.row()["joins"] == 2)
    one.kill()


def test_errors_that_a_program_prints_are_history_once_a_second(play, tmp_path):
    assert play(failed).errors == ["commit: fenced", "[Error 30] GroupAuthorizationFailedError"]
    with pytest.raises(NotAuthorizedError, match="GROUP_AUTHORIZATION_FAILED"):
        require_allowed(tmp_path / "history.jsonl", "")


@pytest.fixture
def secure(tmp_path, monkeypatch):
    """Give a load these client properties."""

    def secure(properties):
        file = tmp_path / "alice.properties"
        file.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
        monkeypatch.setenv("GROUPQUAKE_CLIENT_PROPERTIES", str(file))

    return secure


@pytest.mark.parametrize(("at_tap", "protocol"), [("", "SASL_SSL"), ("1", "SASL_PLAINTEXT")])
def test_a_program_gets_resolved_client_properties(
    play, tmp_path, monkeypatch, secure, at_tap, protocol
):
    authority = tmp_path / "ca.pem"
    authority.touch()
    secure({**SECURED, "ssl.ca.location": str(authority)})
    monkeypatch.setenv("ALICES_PASSWORD", "a=b #c")
    monkeypatch.setenv("GROUPQUAKE_TLS_ENDS_AT_TAP", at_tap)
    play(failed)
    path, mode, text, again = json.loads((tmp_path / "secured.json").read_text())
    assert text.splitlines() == [
        *(f"security.protocol={protocol}", "sasl.mechanism=PLAIN", "sasl.username=alice"),
        *("sasl.password=a=b #c", *([] if at_tap else [f"ssl.ca.location={authority}"])),
    ]
    assert again == text
    assert mode == "0o600"
    assert not Path(path).exists(), "it is gone with the load"
    environment = json.loads((tmp_path / "environment.json").read_text())
    assert "GROUPQUAKE_TLS_ENDS_AT_TAP" not in environment
    assert "a=b" not in (tmp_path / "members" / "fails.properties").read_text()
    _, _, line, *_ = (tmp_path / "members" / "fails.log").read_text().splitlines()
    for_java = json.loads(line)["properties"]
    assert "client.id=fails\n" in for_java
    assert f"security.protocol={protocol}\n" in for_java
    assert 'username="alice" password="a=b #c";' in for_java


@pytest.mark.parametrize("theirs", [None, "/their/packages"], ids=["none", "some"])
def test_a_program_does_not_see_our_packages(monkeypatch, theirs):
    """The runner puts their folder before the user's own."""
    monkeypatch.setenv("PYTHONPATH", theirs or "")
    monkeypatch.setenv("PYTHONPATH", load_process.environment()["PYTHONPATH"])
    assert users_environment().get("PYTHONPATH") == theirs


def duplicated(programs):
    one, dynamic = (programs.member(programs.config(*of)) for of in (("m",), ("n", None)))
    one.open()
    dynamic.open()
    duplicate = {"do": "duplicate"}
    said = [one.carry_out(duplicate)["client_id"]]
    said += [refusal(each.carry_out, duplicate) for each in (one, dynamic)]
    for _ in range(2):
        one.carry_out({"do": "end-duplicate"})
    dynamic.kill()
    one.close()
    return said


def test_a_duplicate_is_a_second_process_of_the_same_program(play):
    seen = play(duplicated)
    client_id, twice, dynamic = seen.result
    assert client_id == "m.duplicate"
    assert twice.startswith("'m' has a duplicate already, 'm.duplicate';")
    assert dynamic.startswith("'n' is a dynamic member and has no group.instance.id")
    assert seen.events.count("killed") == 2


def given_to_a_duplicate(programs):
    config = replace(programs.config("m"), client="librdkafka").as_duplicate()
    one = programs.member(config)
    one.start()
    given = Path(f"/proc/{one.pid}/environ").read_bytes().decode().split("\0")
    environment = dict(variable.split("=", 1) for variable in given if variable)
    read = "import json, verifiable; print(json.dumps(verifiable.security()))"
    printed = subprocess.check_output([sys.executable, "-c", read], env=environment)
    one.kill()
    return json.loads(printed)


def test_a_duplicate_gets_a_secret_of_several_lines(play, tmp_path, secure):
    secret = "one\n two\r\n\nkey=three"
    (tmp_path / "secret").write_bytes(secret.encode())
    properties = {**SECURED, "security.protocol": "SASL_PLAINTEXT"}
    secure({**properties, "sasl.password": f"${{file:{tmp_path}/secret}}"})
    assert play(given_to_a_duplicate).result == {**properties, "sasl.password": secret}


def close_was_killed(programs):
    one = programs.opened("deaf")
    pid = one.pid
    closing = gevent.spawn(one.close)
    until(lambda: "closing" in (programs.folder / "history.jsonl").read_text())
    closing.kill()
    return is_within(pid, DEAD, 5), one.state


def test_a_program_ends_though_the_greenlet_that_closes_it_is_killed(play):
    seen = play(close_was_killed)
    assert seen.result == (True, "stopped")
    assert seen.events[-1] == "killed"


def flooded(programs):
    module.nb_read = lambda *_: b"{}"  # there is always more to read
    one = programs.member(programs.config("m"))
    one.open()
    gevent.sleep(0.1)
    one.close()
    return one.state


def test_a_program_that_prints_without_end_holds_nobody_up(play):
    assert play(flooded).result == "stopped"


def kill_was_killed_on_the_wire(programs):
    monkey.patch_socket()

    def slow_to_end():
        try:
            gevent.sleep(60)
        finally:
            gevent.sleep(60)

    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    config = replace(programs.config("m"), client="wire")
    one = programs.member(config, WireClient, f"127.0.0.1:{port}")
    one.open()
    client = one._client
    client._greenlet.kill()
    client._greenlet = gevent.spawn(slow_to_end)
    connection = client._client._member.connection = Connection("127.0.0.1", port, "m")
    killing = gevent.spawn(one.kill)
    gevent.sleep(0)
    killing.kill()
    return one.state, refusal(connection.fileno)


def test_a_client_on_the_wire_is_gone_though_the_greenlet_that_kills_it_is_killed(play):
    state, said = play(kill_was_killed_on_the_wire).result
    assert state == "killed"
    assert said.startswith("m: the connection to 127.0.0.1:")


def fenced_and_started(programs):
    one = programs.opened("fenced", "fenced")
    one.start()
    one.kill()


def test_a_program_that_says_that_it_is_fenced_stays_down_until_it_is_started(play):
    seen = play(fenced_and_started)
    lives = [(line["event"], line.get("partitions")) for line in seen.lines]
    lives = [one for one in lives if one[0] in ("created", "fenced", "killed")]
    assert lives[:4] == [
        ("created", None), ("fenced", ["t-0"]), ("killed", []), ("created", None)
    ]  # fmt: skip


def test_a_signal_takes_effect_when_all_threads_of_the_group_have_it():
    two = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    words = [sys.executable, "-c", two]
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as group:
        assert not is_within(group.pid, STOPPED, 0.2)
        assert not is_within(group.pid, DEAD, 0.2)
        os.kill(group.pid, signal.SIGSTOP)
        assert not is_within(group.pid, DEAD, 0.2)
        os.killpg(group.pid, signal.SIGSTOP)
        assert is_within(group.pid, STOPPED, 20)
        os.killpg(group.pid, signal.SIGKILL)
        assert is_within(group.pid, DEAD, 20)
    assert is_within(2**22 + 1, DEAD, 0.2)
