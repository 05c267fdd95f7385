"""Faults of members, with a load that is a control channel and a broker that is a log."""

import socket
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from chaos.errors import ChaosError, LoadGoneError, WorkerGoneError
from chaos.fault_runner import heal_from_journal
from chaos.member_evidence import is_open
from kafka_protocol.errors import Error
from scenarios.durations import now_ms
from scenarios.faults.base import Finding
from tests.chaos.fakes import until

ONE = "target: {names: [static-3]}"
KILL = f"fault: member.kill, {ONE}, down_for: 150ms"
PAUSE = f"fault: member.pause, {ONE}, down_for: 700ms"
SLOW = f"fault: member.slow-poll, {ONE}, lasts: 2s"
UNSUBSCRIBE = f"fault: member.unsubscribe, {ONE}, for: 2s"
RESTART = f"fault: member.restart, {ONE}, down_for: 150ms"
DUPLICATE = f"fault: member.duplicate-instance, {ONE}, lasts: 150ms"
SWAP = "fault: member.swap-instance, members: [static-2, static-3], lasts: 100ms"
PAIR = ["static-2", "static-3"]


@pytest.fixture(autouse=True)
def _soon_silent(monkeypatch):
    """Nothing is on its way for long here: a member that was stopped is silent soon."""
    monkeypatch.setattr("chaos.member_evidence.SILENCE_GRACE_MS", 20)


def shown(fault, *, holds: bool = True, words: str = "") -> str:
    """What the witness says, once it says so."""

    def look() -> str:
        found = fault.verify()
        return found.evidence if found.holds is holds and words in found.evidence else ""

    return until(look)


@contextmanager
def connected(listens: str, connects: str):
    """Both ends of a connection on this machine, the client's first."""
    v6 = lambda host: socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((listens, 0), family=v6(listens)) as listener,
        socket.socket(v6(connects)) as client,
    ):
        client.connect((connects, listener.getsockname()[1]))
        broker, _ = listener.accept()
        with broker:
            yield client, broker


def name_of(client: socket.socket, numbers: str = "1-4") -> str:
    """What a broker calls a connection."""
    (here, port), (there, other) = client.getpeername()[:2], client.getsockname()[:2]
    return f"{as_java(here)}:{port}-{as_java(there)}:{other}-{numbers}"


def as_java(host: str) -> str:
    """An address as Java writes it: mapped ones as IPv4, others without `::`."""
    if ":" not in host:
        return host
    address = IPv6Address(host)
    words = (f"{int(word, 16):x}" for word in address.exploded.split(":"))
    return str(address.ipv4_mapped or ":".join(words))


def test_a_kill_is_silence_without_leave_group_and_then_a_join(load, aim):
    load.log.request("static-3", "LEAVE_GROUP")  # of an earlier process
    left_ms = now_ms()
    until(lambda: now_ms() > left_ms)
    kill = aim(KILL)
    kill.inject()
    evidence = shown(kill)
    assert evidence.startswith("no request of static-3 for ")
    assert evidence.endswith(
        ", no LEAVE_GROUP of it (a static member sends none when closed, either),"
        " no socket of this machine could be matched with its connection"
    )
    assert kill.heal() == "started over the control channel"
    assert kill.verify_healed().holds
    assert [do for do, *_ in load.orders] == ["kill", "start"]


def test_a_member_that_sends_leave_group_or_continues_was_not_killed(load, aim):
    load.polite.add("static-3")
    kill = aim(KILL)
    kill.inject()
    left = "static-3 said goodbye with LEAVE_GROUP (group.log of broker 1, line"
    shown(kill, holds=False, words=left)
    kill.heal()
    load.deaf.add("static-3")
    load.polite.clear()
    again = aim(KILL)
    again.inject()
    shown(again, holds=False, words="static-3 sent HEARTBEAT ")


def test_a_connection_that_stays_open_disproves_a_kill(load, aim):
    until(lambda: load.is_up("static-3"))
    load.deaf.add("static-3")
    load.silence("static-3")
    kill = aim(KILL)
    with connected("127.0.0.1", "127.0.0.1") as (client, _):
        name = name_of(client)
        load.log.request("static-3", "HEARTBEAT", connection=name)
        kill.inject()
        shown(kill, holds=False, words=f"but connection {name} is open")
    assert shown(kill).endswith(f", no LEAVE_GROUP of it, connection {name} gone")


@pytest.mark.parametrize(
    ("listens", "connects", "named"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:"),
        ("127.0.0.1", "::ffff:127.0.0.1", "127.0.0.1:"),  # as Java connects
        ("::1", "::1", "0:0:0:0:0:0:0:1:"),
    ],
)
def test_a_connection_is_open_while_the_kernel_says_so(listens, connects, named):
    if ":" in connects and not Path("/proc/net/tcp6").exists():
        pytest.skip("this machine has no IPv6")
    with connected(listens, connects) as (client, _):
        names = [name_of(client, numbers) for numbers in ("7", "1-4")]  # 3.9 and 4.x
        assert all(name.startswith(named) and is_open(name) for name in names)
        assert not is_open(names[0].replace(named, named.replace("1:", "2:")))
    until(lambda: not is_open(names[0]))
    assert not is_open("no connection")


@pytest.fixture(params=[PAUSE, SLOW, UNSUBSCRIBE], ids=["pause", "slow-poll", "unsubscribe"])
def frozen(request, aim, monkeypatch):
    """A fault of a member that stays up; the load here takes any order for a program."""
    monkeypatch.setattr("scenarios.faults.member.IN_LOAD", ("librdkafka-process",))
    return aim(request.param)


def test_a_member_is_silent_and_then_beats_again(load, frozen):
    frozen.inject()
    evidence = frozen._evidence
    frozen._evidence = replace(evidence, heartbeat_interval_ms=60_000)
    assert not frozen.verify().holds, "too soon to tell"
    frozen._evidence = evidence
    shown(frozen)
    assert frozen.heal() == frozen.heal() == "resumed over the control channel"
    back = frozen.verify_healed()
    assert back.holds
    assert back.evidence.startswith("HEARTBEAT answered NONE")
    assert load.is_up("static-3")


def test_a_member_that_was_removed_meanwhile_has_to_join(load, frozen, stop):
    load.expired.add("static-3")
    load.unassigned.add("static-3")
    frozen.inject()
    shown(frozen)
    frozen.heal()
    refused = f'"errorCode":{Error.REBALANCE_IN_PROGRESS}'
    until(lambda: refused in load.log.path.read_text())
    stop.set()
    assert not frozen.verify_healed().holds


def test_a_member_that_goes_on_was_not_stopped(load, frozen):
    load.deaf.add("static-3")
    frozen.inject()
    shown(frozen, holds=False, words="static-3 sent HEARTBEAT ")


def test_a_slow_member_that_leaves_has_to_be_silent_too(load, aim, context):
    load.polite.add("static-3")
    fault = aim(SLOW)
    fault.inject()
    assert shown(fault).startswith("LEAVE_GROUP of static-3 ")
    context.members.order("resume", "static-3")
    assert shown(fault, holds=False).startswith("LEAVE_GROUP of static-3 ")


@pytest.mark.parametrize(
    ("becomes", "identity"), [("{instance_id: app-3}", "app-3"), ("dynamic", None)]
)
def test_a_member_may_restart_with_another_identity(load, aim, becomes, identity):
    fault = aim(f"{RESTART}, becomes: {becomes}")
    assert fault.hit.undo == {"do": "start", "member": "static-3", "instance_id": identity}
    assert fault.hit.details == {"instance_id": identity}
    fault.inject()
    shown(fault)
    assert fault.heal() == "started over the control channel"
    back = fault.verify_healed()
    assert back.holds
    assert back.evidence.endswith(f"as {identity or 'a dynamic member'}")


def test_a_restart_with_the_old_identity_is_not_the_new_one(load, aim, context, monkeypatch):
    plain = aim(RESTART)
    assert (plain.hit.undo, plain.hit.details) == ({"do": "start", "member": "static-3"}, {})
    plain.inject()
    plain.heal()
    assert plain.verify_healed().holds
    wrong = aim(f"{RESTART}, becomes: {{instance_id: another}}")
    wrong.inject()
    context.members.order("start", "static-3")
    monkeypatch.setattr(type(context.members), "order", lambda *_: None)
    wrong.heal()
    until(lambda: load.is_up("static-3"))
    wrong._healing_ms = wrong._began_ms
    back = wrong.verify_healed()
    assert not back.holds
    assert back.evidence.endswith("but as static-3, not as another")


def test_the_newer_one_is_let_in_and_the_older_one_fenced(load, aim):
    duplicate = aim(DUPLICATE)
    assert duplicate.hit.undo == {"do": "end-duplicate", "member": "static-3"}
    assert duplicate.hit.details == {"duplicate": "static-3.duplicate"}
    duplicate.inject()
    place = "group.log of broker 1, line "
    evidence = shown(duplicate, words=f", HEARTBEAT of static-3 FENCED_INSTANCE_ID ({place}")
    assert evidence.startswith(f"JOIN_GROUP of static-3.duplicate answered NONE ({place}")
    assert "started afresh" in duplicate.heal()
    assert duplicate.verify_healed().holds
    assert load.is_up("static-3")
    assert not load.is_up("static-3.duplicate")


def test_a_duplicate_that_never_joins_or_fences_nobody_is_not_verified(load, aim):
    load.lost.add("static-3.duplicate")
    duplicate = aim(DUPLICATE)
    duplicate.inject()
    missing = "no JOIN_GROUP of static-3.duplicate was answered NONE"
    assert duplicate.verify() == Finding(False, missing)
    load.lost.clear()
    load.unnoticed.add("static-3")
    unfenced = "no request of static-3 as static-3 was answered FENCED_INSTANCE_ID"
    shown(duplicate, holds=False, words=unfenced)


def test_two_members_exchange_their_ids_and_get_them_back(load, aim):
    fault = aim(SWAP)
    assert (fault.hit.target, fault.hit.details) == ("static-2, static-3", {"members": PAIR})
    fault.inject()
    assert [do for do, *_ in load.orders] == ["stop", "stop", "start", "start"]
    assert load.ordered("stop") == load.ordered("start") == PAIR
    until(lambda: all(map(load.is_up, PAIR)))
    swapped = fault.verify()
    assert swapped.holds, swapped.evidence
    assert "static-2: JOIN_GROUP" in swapped.evidence
    assert ", as static-3; static-3: JOIN_GROUP" in swapped.evidence
    assert fault.heal().startswith("both restarted with their own")
    back = fault.verify_healed()
    assert (back.holds, back.evidence.endswith(", as static-3")) == (True, True)
    load.refused.add("static-3")
    with pytest.raises(ChaosError, match="refused"):
        fault.heal()


def test_a_member_that_came_with_its_own_id_is_not_swapped(load, aim, context):
    fault = aim(SWAP)
    fault.inject()
    context.members.restart_as({name: name for name in PAIR})
    shown(fault, holds=False, words="but as static-2, not as static-3")


@pytest.mark.parametrize("lost", PAIR)
def test_no_member_gets_the_id_of_one_that_was_lost_before_the_swap(load, aim, lost):
    """The one whose worker is there restarts as itself."""
    [there] = [member for member in PAIR if member != lost]
    load.gone = {lost}
    fault = aim(SWAP)
    with pytest.raises(WorkerGoneError):
        fault.inject()
    assert load.ordered("start") == []
    assert fault.heal() == (
        f"{there} restarted with its own instance id over the control channel;"
        f" {lost}: lost with its worker"
    )
    until(lambda: load.is_up(there))
    back = fault.verify_healed()
    assert not back.holds
    assert back.evidence.startswith(f"{there}: JOIN_GROUP")
    assert back.evidence.endswith(f", as {there}; {lost}: lost with its worker")
    load.gone = set(PAIR)
    with pytest.raises(WorkerGoneError):
        fault.heal()


@pytest.mark.parametrize("keys", [KILL, PAUSE, SLOW, RESTART, DUPLICATE, SWAP])
def test_what_was_done_to_members_is_gone_with_the_load(load, aim, keys):
    fault = aim(keys)
    load.die()
    with pytest.raises(LoadGoneError):
        fault.heal()
    assert heal_from_journal(fault.hit.undo) == LoadGoneError.left
