"""Members that are programs, watched with gevent in a child; a small one stands in for others.

It prints the lines of the VerifiableConsumer (Kafka 4.3.0), and what it got.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from groupquake import load_process
from groupquake.access import require_allowed
from groupquake.exits import NotAuthorizedError
from tests.loadtest.loads import run_script

STAND_IN = """
import json, os, signal, sys, time
from pathlib import Path

def say(**fields):
    line = json.dumps({"timestamp": 1, **fields}) + "\\n"
    os.write(1, line.encode())  # whole, whenever the signal comes

class Closed(Exception): pass
def close(*_): raise Closed
signal.signal(signal.SIGTERM, close)
properties = Path(os.environ["GROUPQUAKE_PROPERTIES"]).read_text()
Path("environment.json").write_text(json.dumps(dict(os.environ)))
given = {name: value for name, value in os.environ.items() if name.startswith("GROUPQUAKE_")}
both = [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
print("what the runtime itself has to say", flush=True)
print('{"name":"partitions_assigned"}', flush=True)
say(name="startup_complete", arguments=sys.argv[1:], properties=properties, given=given)
try:
    say(name="partitions_assigned", partitions=both)
    offset = {"topic": "t", "partition": 0, "offset": 7}
    say(name="offsets_committed", offsets=[offset], success=True)
    say(name="offsets_committed", offsets=[offset], success=False, error="fenced")
    for _ in range(3 if "client.id=fails" in properties else 0):
        say(name="error", error="[Error 30] GroupAuthorizationFailedError")
    if secured := os.environ["GROUPQUAKE_CLIENT_PROPERTIES"]:
        mode = oct(os.stat(secured).st_mode & 0o777)
        found = [Path(secured).read_text() for _ in range(2)]
        Path("secured.json").write_text(json.dumps([secured, mode, *found]))
    if "client.id=fails" in properties:
        say(name="partitions_assigned", partitions=[])
    if "client.id=fenced" in properties:
        say(name="partitions_revoked", partitions=both[1:])
        say(name="fenced", error="FENCED_INSTANCE_ID")
    if "client.id=ends" in properties and Path("once").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    if "client.id=ends" in properties:
        Path("once").touch()
        sys.exit("Traceback: \\x1b[31m\\n\\nValueError: bad record \\xe9" + "!" * 500)
    while "client.id=talks" in properties:
        with open("polls", "a") as polls:
            polls.write(".")
        say(name="records_consumed", count=1, filler="x" * 200)
        time.sleep(0.001)
    time.sleep(60)
except Closed:
    if "client.id=crashes" in properties:
        os.abort()
    while "client.id=deaf" in properties:
        time.sleep(60)
    time.sleep(1 if "client.id=slow" in properties else 0)
    say(name="partitions_revoked", partitions=both[1:])
    say(name="shutdown_complete")
"""

START = """
import json, sys
from pathlib import Path
import gevent
from loadtest.configs import MemberConfig
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.members.member import Member
from loadtest.members.program import ProgramClient

folder = Path(sys.argv[1])
history = History(folder / "history.jsonl")

def member(name, instance_id="app-1"):
    kind = "static" if instance_id else "dynamic"
    config = MemberConfig(
        name, "g", kind, instance_id, ("t", "u"), "range", 6000, 500, 60000, 1000, 2000,
        "command", tuple(json.loads(sys.argv[2])),
    )
    start = lambda one: ProgramClient(one, "127.0.0.1:1")
    return Member(config, start, history, lambda _: lambda *_, **__: None)

def ask(one, do, **more):
    return one.carry_out({"do": do, **more})

def until(state, one):
    with gevent.Timeout(30):
        while one.state != state:
            one.poll_once()
            gevent.sleep(0.01)

def joined(name):
    one = member(name)
    one.open()
    until("joined", one)
    return one

"""
CLOSES = """
one = member("m")
one.open()
one.open()
until("joined", one)
print(json.dumps(one.row()))
one.close()
one.close()
print(json.dumps(one.row()))
"""
FAILS = """
one = joined("fails")
with gevent.Timeout(30):
    while one.row()["joins"] < 2:
        gevent.sleep(0.01)
one.kill()
"""
SLOW = """
one = joined("slow")
one.close()
"""
DEAF = """
import loadtest.members.program
loadtest.members.program.PROGRAM_CLOSE_S = 0.3
one = joined("deaf")
one.close()
print(one.state)
"""
CRASHED = """
import os, signal
one = joined("m")
os.kill(one.pid, signal.SIGKILL)
os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
one.close()
print(one.state)
"""
CRASHES = SLOW.replace("slow", "crashes") + "print(one.state)"
STARTED_LATE = """
import loadtest.members.program
from loadtest.history import now_ms

class Late(loadtest.members.program.subprocess.Popen):
    def __init__(self, *words, **more):
        print(now_ms())
        super().__init__(*words, **more)

loadtest.members.program.subprocess.Popen = Late
one = member("m")
one.open()
one.kill()
"""
ESCAPED = """
import os, time
one = joined("m")
sleeper = folder / "sleeper"
with gevent.Timeout(30):
    while not sleeper.exists() or not sleeper.read_text().strip():
        gevent.sleep(0.01)
began = time.time()
one.kill()
print(json.dumps([began * 1000, time.time() * 1000]))
os.kill(int(sleeper.read_text()), 9)
"""
KILLED = """
one = joined("m")
try:
    one.change_identity(None)
except LoadtestError as error:
    print(error)
one.kill()
try:
    one.kill()
except LoadtestError as error:
    print(error)
one.change_identity(None)
one.open()
until("joined", one)
one.kill()
"""
ENDS_BY_ITSELF = """
one = member("ends")
for _ in range(2):
    one.open()
    until("failed", one)
one.open()
one.kill()
"""


HELD = """
import os
os.chdir(folder)
polls = lambda: os.path.getsize("polls")
one = joined("talks")
with gevent.Timeout(30):
    while not os.path.exists("polls"):
        gevent.sleep(0.01)
ask(one, "stop-polling")
before = -1
with gevent.Timeout(30):
    while before != polls():
        before = polls()
        gevent.sleep(0.5)
ask(one, "pause")
ask(one, "resume")
with gevent.Timeout(30):
    while polls() < before + 100:
        gevent.sleep(0.01)
ask(one, "stop-polling")
one.close()
print(before > 0, one.state)
"""
PAUSED = """
one = joined("m")
state = lambda: Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()[0]
ask(one, "pause")
print(state())
ask(one, "resume")
with gevent.Timeout(30):
    while state() == "T":
        gevent.sleep(0.01)
ask(one, "pause")
one.close()
"""
CLOSE_KILLED = """
import gevent
from loadtest.members.program import DEAD, is_within
one = joined("deaf")
pid = one.pid
closing = gevent.spawn(one.close)
with gevent.Timeout(30):
    while "closing" not in (folder / "history.jsonl").read_text():
        gevent.sleep(0.01)
closing.kill()
print(is_within(pid, DEAD, 5), one.state)
"""
FLOODS = """
import loadtest.members.program
loadtest.members.program.nb_read = lambda *_: b"{}"  # there is always more to read
one = member("m")
one.open()
gevent.sleep(0.1)
one.close()
print(one.state)
"""
SECRET = """
import subprocess
from dataclasses import replace
config = replace(member("m").config, client="librdkafka").as_duplicate()
start = lambda one: ProgramClient(one, "127.0.0.1:1")
one = Member(config, start, history, lambda _: lambda *_, **__: None)
one.start()
given = Path(f"/proc/{one.pid}/environ").read_bytes().decode().split(chr(0))
environment = dict(variable.split("=", 1) for variable in given if variable)
read = "import json, verifiable; print(json.dumps(verifiable.security()))"
subprocess.run([sys.executable, "-c", read], env=environment, check=True)
one.kill()
"""
DUPLICATE = """
one, dynamic = member("m"), member("n", None)
one.open()
dynamic.open()
print(ask(one, "duplicate")["client_id"])
for each in (one, dynamic):
    try:
        ask(each, "duplicate")
    except LoadtestError as error:
        print(error)
for _ in range(2):
    ask(one, "end-duplicate")
dynamic.kill()
one.close()
"""
MISSING = """
one = member("m")
try:
    one.start()
except LoadtestError as error:
    print(error)
"""
SHELL = "trap 'exit 0' TERM; {program} & wait"
"""A wrapper that does not hand signals on."""

REQUIRED = ("GROUPQUAKE_BROWSER_REQUIRED", "GROUPQUAKE_DOCKER_REQUIRED")
"""What CI sets for the tests themselves."""


@pytest.fixture
def run(tmp_path: Path):
    """Run a script; returns what it printed, and the history's (event, partitions, kind)."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "programs.json").write_text(json.dumps({"folder": str(tmp_path), "commands": {}}))
    own = [sys.executable, "stand_in.py", "--to={bootstrap}", "{group}/{instance_id}", "{x}"]

    def run(script, command=own):
        env = {name: value for name, value in os.environ.items() if name not in REQUIRED}
        said = run_script(START + script, str(tmp_path), json.dumps(command), env=env)
        lines = map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines())
        events_seen = [(line["event"], line.get("partitions"), line["kind"]) for line in lines]
        return said, events_seen

    return run


def test_a_program_is_told_its_identity_and_closes_cleanly(run, tmp_path):
    (up, down), events_seen = run(CLOSES)
    row = {"name": "m", "group": "g", "kind": "static", "instance_id": "app-1", "member_id": None}
    assert json.loads(up) == {
        **row, "state": "joined", "partitions": ["t-0", "t-1"], "joins": 1
    }  # fmt: skip
    assert json.loads(down) == {**row, "state": "stopped", "partitions": [], "joins": 1}
    assert events_seen == [
        ("created", None, "static"),
        ("assigned", ["t-0", "t-1"], "static"),
        ("committed", None, "static"),
        ("error", None, "static"),
        ("closing", None, "static"),
        ("revoked", ["t-1"], "static"),
        ("closed", ["t-0"], "static"),
    ]
    history = list(map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines()))
    assert (history[2]["offsets"], history[3]["error"]) == (1, "commit: fenced")
    log = (tmp_path / "members" / "m.log").read_text().splitlines()
    assert log[:2] == ["what the runtime itself has to say", '{"name":"partitions_assigned"}']
    startup, *_, last = map(json.loads, log[2:])
    assert last["name"] == "shutdown_complete"
    assert startup["arguments"] == ["--to=127.0.0.1:1", "g/app-1", "{x}"]
    assert startup["given"] == {
        "GROUPQUAKE_BOOTSTRAP": "127.0.0.1:1",
        "GROUPQUAKE_GROUP": "g",
        "GROUPQUAKE_CLIENT_ID": "m",
        "GROUPQUAKE_INSTANCE_ID": "app-1",
        "GROUPQUAKE_PROTOCOL": "classic",
        "GROUPQUAKE_TOPIC": "t",
        "GROUPQUAKE_TOPICS": "t,u",
        "GROUPQUAKE_ASSIGNOR": "range",
        "GROUPQUAKE_SESSION_TIMEOUT_MS": "6000",
        "GROUPQUAKE_HEARTBEAT_INTERVAL_MS": "500",
        "GROUPQUAKE_MAX_POLL_INTERVAL_MS": "60000",
        "GROUPQUAKE_COMMIT_INTERVAL_MS": "1000",
        "GROUPQUAKE_METADATA_MAX_AGE_MS": "2000",
        "GROUPQUAKE_PROPERTIES": str(tmp_path / "members" / "m.properties"),
        "GROUPQUAKE_JAVA_ASSIGNOR": "org.apache.kafka.clients.consumer.RangeAssignor",
        "GROUPQUAKE_CLIENT_PROPERTIES": "",
        "GROUPQUAKE_RUN_FOLDER": str(tmp_path),
    }
    assert sorted(startup["properties"].splitlines()) == sorted([
        "bootstrap.servers=127.0.0.1:1", "group.id=g", "client.id=m",
        "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor",
        "session.timeout.ms=6000", "heartbeat.interval.ms=500", "max.poll.interval.ms=60000",
        "metadata.max.age.ms=2000", "auto.commit.interval.ms=1000", "group.instance.id=app-1",
    ])  # fmt: skip


def test_a_program_is_killed_and_restarts_with_another_identity(run, tmp_path):
    (is_up, is_down), events_seen = run(KILLED)
    assert is_up == "'m' is up as app-1; stop or kill it before you start it with another identity"
    assert is_down == "'m' is killed and has no client; start it first"
    seen = [(event, kind) for event, _, kind in events_seen if event in ("created", "killed")]
    assert seen == [
        (event, kind) for kind in ("static", "dynamic") for event in ("created", "killed")
    ]
    assert "group.instance.id" not in (tmp_path / "members" / "m.properties").read_text()


def test_a_program_that_ends_by_itself_is_reported_and_reopened(run, tmp_path):
    _, events_seen = run(ENDS_BY_ITSELF)
    once = ["created", "assigned", "committed", "error", "killed", "ended"]
    assert [event for event, *_ in events_seen][:13] == [*once, *once, "created"]
    lines = map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines())
    exited, killed = (line for line in lines if line["event"] == "ended")
    assert (exited["exit_code"], killed["exit_code"]) == (1, -9)
    said = "its process has ended by itself, exit code {}; last in members/ends.log: "
    assert exited["error"].startswith(said.format(1))
    quoted = "'Traceback: \\x1b[31m' | 'ValueError: bad record é"
    assert f"{quoted}{'!' * (200 - len('ValueError: bad record .'))}'" in exited["error"]
    assert "!" * 201 not in exited["error"]
    assert killed["error"].startswith(said.format(-9))
    assert "ValueError" not in killed["error"], "that is of the process before"


def test_a_program_that_says_nothing_is_quoted_so(run, tmp_path):
    run(ENDS_BY_ITSELF, ["sh", "-c", "exit 0"])
    first = (tmp_path / "history.jsonl").read_text().splitlines()[2]
    said = "its process has ended by itself, exit code 0; last in members/ends.log: nothing"
    assert json.loads(first)["error"] == said


def test_a_script_whose_interpreter_is_not_there_says_so(run, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    run(ENDS_BY_ITSELF, ["./script"])
    first = (tmp_path / "history.jsonl").read_text().splitlines()[2]
    assert json.loads(first)["error"] == (
        "its process has ended by itself, exit code 1; last in members/ends.log:"
        f" '{script} cannot be run: No such file or directory'"
    )


def test_a_program_polls_no_more_while_nobody_reads_what_it_prints(run, tmp_path):
    printed, events_seen = run(HELD)
    assert printed == ["True stopped"]
    assert events_seen[-1][0] == "closed"
    log = (tmp_path / "members" / "talks.log").read_text().splitlines()
    assert all(json.loads(line) for line in log[2:]), "nothing is added to what it prints"


def test_a_paused_program_goes_on_and_a_paused_one_can_be_closed(run):
    printed, events_seen = run(PAUSED)
    assert printed == ["T"]
    assert [event for event, *_ in events_seen][-3:] == ["closing", "revoked", "closed"]


@pytest.mark.parametrize("shell", [SHELL, "{program}; echo over"])
def test_a_clean_close_waits_for_what_a_shell_started(run, shell):
    """A shell ends at once, the program takes a second to leave."""
    program = f"{sys.executable} stand_in.py"
    _, events_seen = run(SLOW, ["sh", "-c", shell.format(program=program)])
    assert events_seen[-2:] == [
        ("revoked", ["t-1"], "static"),
        ("closed", ["t-0"], "static"),
    ]


def test_a_program_that_does_not_close_in_time_is_killed(run):
    printed, events_seen = run(DEAF)
    assert printed == ["stopped"]
    assert [event for event, *_ in events_seen][-2:] == ["closing", "killed"]


@pytest.mark.parametrize(
    ("script", "last", "said"),
    [
        (CRASHED, ["killed", "ended"], "its process has ended by itself, exit code -9; last in "),
        (CRASHES, ["error", "killed"], "its process crashed as it closed, exit code -6"),
    ],
    ids=["before", "meanwhile"],
)
def test_a_program_that_crashes_has_not_closed(run, tmp_path, script, last, said):
    printed, events_seen = run(script)
    assert printed == ["stopped"]
    assert [event for event, *_ in events_seen][-2:] == last
    assert "closed" not in [event for event, *_ in events_seen]
    lines = map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines())
    assert [line["error"] for line in lines if "error" in line][-1].startswith(said)


def test_a_program_is_created_before_its_process_runs(run, tmp_path):
    (before_ms,), _ = run(STARTED_LATE)
    created = json.loads((tmp_path / "history.jsonl").read_text().splitlines()[0])
    assert created["event"] == "created"
    assert created["at_ms"] <= float(before_ms)


def test_what_a_program_started_in_another_session_holds_nothing_up(run, tmp_path):
    started = "setsid sh -c 'echo $$ > sleeper; exec sleep 60' & exec {program}"
    program = f"{sys.executable} stand_in.py"
    (times,), events_seen = run(ESCAPED, ["sh", "-c", started.format(program=program)])
    began_ms, ended_ms = json.loads(times)
    assert ended_ms - began_ms < 30_000
    assert events_seen[-1] == ("killed", ["t-0", "t-1"], "static")
    killed = json.loads((tmp_path / "history.jsonl").read_text().splitlines()[-1])
    assert began_ms <= killed["at_ms"] <= ended_ms


def test_errors_that_a_program_prints_are_history_once_a_second(run, tmp_path):
    run(FAILS)
    lines = map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines())
    errors = [line["error"] for line in lines if line["event"] == "error"]
    assert errors == ["commit: fenced", "[Error 30] GroupAuthorizationFailedError"]
    with pytest.raises(NotAuthorizedError, match="GROUP_AUTHORIZATION_FAILED"):
        require_allowed(tmp_path / "history.jsonl", "")


@pytest.mark.parametrize(
    ("at_tap", "first"),
    [("", "security.protocol=SASL_SSL"), ("1", "security.protocol=SASL_PLAINTEXT")],
)
def test_a_program_gets_resolved_client_properties(run, tmp_path, monkeypatch, at_tap, first):
    authority = tmp_path / "ca.pem"
    authority.touch()
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "${env:ALICES_PASSWORD}",
        "ssl.ca.location": str(authority),
    }
    file = tmp_path / "alice.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in given.items()))
    monkeypatch.setenv("ALICES_PASSWORD", "a=b #c")
    monkeypatch.setenv("GROUPQUAKE_CLIENT_PROPERTIES", str(file))
    monkeypatch.setenv("GROUPQUAKE_TLS_ENDS_AT_TAP", at_tap)
    run(FAILS)
    path, mode, text, again = json.loads((tmp_path / "secured.json").read_text())
    trust = [] if at_tap else [f"ssl.ca.location={authority}"]
    assert text.splitlines() == [
        first, "sasl.mechanism=PLAIN", "sasl.username=alice", "sasl.password=a=b #c", *trust
    ]  # fmt: skip
    assert again == text
    assert mode == "0o600"
    assert not Path(path).exists(), "it is gone with the load"
    environment = json.loads((tmp_path / "environment.json").read_text())
    assert "GROUPQUAKE_TLS_ENDS_AT_TAP" not in environment
    log = [file for file in (tmp_path / "members").iterdir() if file.suffix == ".properties"]
    assert all("a=b" not in one.read_text() for one in log)


@pytest.mark.parametrize(("theirs", "seen"), [("", None), ("/their/packages", "/their/packages")])
def test_a_program_does_not_see_our_packages(run, tmp_path, monkeypatch, theirs, seen):
    """The runner puts their folder before the user's own."""
    monkeypatch.setenv("PYTHONPATH", theirs)
    monkeypatch.setenv("PYTHONPATH", load_process.environment()["PYTHONPATH"])
    run(SLOW)
    given = json.loads((tmp_path / "environment.json").read_text())
    assert given.get("PYTHONPATH") == seen


def test_a_duplicate_is_a_second_process_of_the_same_program(run):
    (client_id, twice, dynamic), events_seen = run(DUPLICATE)
    assert client_id == "m.duplicate"
    assert twice.startswith("'m' has a duplicate already, 'm.duplicate';")
    assert dynamic.startswith("'n' is a dynamic member and has no group.instance.id")
    assert [event for event, *_ in events_seen].count("killed") == 2


def test_a_program_ends_though_the_greenlet_that_closes_it_is_killed(run):
    printed, events_seen = run(CLOSE_KILLED)
    assert printed == ["True stopped"]
    assert events_seen[-1][0] == "killed"


def test_a_program_that_prints_without_end_holds_nobody_up(run):
    printed, _ = run(FLOODS)
    assert printed == ["stopped"]


def test_a_duplicate_gets_a_secret_of_several_lines(run, tmp_path, monkeypatch):
    secret = "one\n two\r\n\nkey=three"
    (tmp_path / "secret").write_bytes(secret.encode())
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": f"${{file:{tmp_path}/secret}}",
    }
    file = tmp_path / "alice.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in given.items()))
    monkeypatch.setenv("GROUPQUAKE_CLIENT_PROPERTIES", str(file))
    printed, _ = run(SECRET)
    assert json.loads(printed[0]) == {**given, "sasl.password": secret}


WIRE_KILLED = """
from gevent import monkey
monkey.patch_all()
import socket
from dataclasses import replace
from loadtest.members.wire import WireClient
from loadtest.wire import Connection

def slow_to_end():
    try:
        gevent.sleep(60)
    finally:
        gevent.sleep(60)

server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
config = replace(member("m").config, client="wire")
start = lambda one: WireClient(one, f"127.0.0.1:{port}")
one = Member(config, start, history, lambda _: lambda *_, **__: None)
one.open()
client = one._client
client._greenlet.kill()
client._greenlet = gevent.spawn(slow_to_end)
connection = client._client._member.connection = Connection("127.0.0.1", port, "m")
killing = gevent.spawn(one.kill)
gevent.sleep(0)
killing.kill()
try:
    connection.fileno()
except LoadtestError as error:
    print(one.state, error)
"""


def test_a_client_on_the_wire_is_gone_though_the_greenlet_that_kills_it_is_killed(run):
    (line,), _ = run(WIRE_KILLED)
    assert line.startswith("killed m: the connection to 127.0.0.1:")


FENCED = """
one = member("fenced")
one.open()
until("fenced", one)
one.start()
one.kill()
"""


def test_a_program_that_says_that_it_is_fenced_stays_down_until_it_is_started(run, tmp_path):
    _, events_seen = run(FENCED)
    once = [("created", None), ("fenced", ["t-0"]), ("killed", [])]
    skipped = ("assigned", "revoked", "committed", "error")
    seen = [(event, partitions) for event, partitions, _ in events_seen if event not in skipped]
    assert seen[:4] == [*once, ("created", None)]


ENDED = """
import os, signal, subprocess, sys
from loadtest.members.program import DEAD, STOPPED, is_within
two = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
command = [sys.executable, "-c", two]
group = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
print(is_within(group.pid, STOPPED, 0.2), is_within(group.pid, DEAD, 0.2))
os.kill(group.pid, signal.SIGSTOP)
print(is_within(group.pid, DEAD, 0.2))
os.killpg(group.pid, signal.SIGSTOP)
print(is_within(group.pid, STOPPED, 20))
os.killpg(group.pid, signal.SIGKILL)
print(is_within(group.pid, DEAD, 20), is_within(2**22 + 1, DEAD, 0.2))
history.write("over")
"""


def test_a_signal_takes_effect_when_all_threads_of_the_group_have_it(run):
    printed, _ = run(ENDED)
    assert printed == ["False False", "False", "True", "True True"]


def test_a_program_that_does_not_exist_is_named(run):
    (line,), _ = run(MISSING + "\nhistory.write('x')", ["no-such-program"])
    assert line == (
        "'m' cannot be started: there is no program 'no-such-program'; check path and mode"
    )
