import time

import pytest

from chaos.errors import ChaosError
from chaos.faults import heal_from_journal
from chaos.faults.member_pause import MemberPause
from chaos.faults.member_slow_poll import MemberSlowPoll


@pytest.fixture(params=[MemberPause, MemberSlowPoll])
def kind(request):
    return request.param


@pytest.fixture
def fault(kind, members, evidence):
    return kind("static-3", "static", 700, evidence, members)


def test_a_member_is_silent_and_then_beats_again(load, fault, stop):
    fault.inject()
    assert not fault.verify().holds, "too soon to tell"
    time.sleep(0.8)
    silent = fault.verify()
    assert silent.holds, silent.evidence
    assert fault.heal() == "resumed over the control channel"
    back = fault.verify_healed(stop)
    assert back.holds
    assert back.evidence.startswith("HEARTBEAT answered NONE")


def test_a_member_that_was_removed_meanwhile_has_to_join(load, fault, stop):
    load.expired.add("static-3")
    load.unassigned.add("static-3")
    fault.inject()
    time.sleep(0.8)
    assert fault.verify().holds
    fault.heal()
    load.silence("static-3")
    assert not fault.verify_healed(stop).holds


def test_a_member_that_goes_on_was_not_stopped(load, fault):
    load.deaf.add("static-3")
    fault.inject()
    time.sleep(0.8)
    found = fault.verify()
    assert (found.holds, "HEARTBEAT" in found.evidence) == (False, True)


def test_a_slow_member_that_leaves_has_to_be_silent_too(load, members, evidence):
    load.polite.add("static-3")
    fault = MemberSlowPoll("static-3", "static", 700, evidence, members)
    fault.inject()
    time.sleep(0.8)
    found = fault.verify()
    assert found.holds
    assert found.evidence.startswith("LEAVE_GROUP of static-3 ")
    members.resume("static-3")
    time.sleep(0.1)
    assert not fault.verify().holds


def test_a_member_is_resumed_however_often_unless_it_is_gone(load, fault):
    fault.inject()
    assert fault.heal() == "resumed over the control channel"
    assert fault.heal() == "resumed over the control channel"
    assert load.is_up("static-3")
    gone = "nothing to undo: the load process is gone, and its members with it"
    assert heal_from_journal(fault.undo) == gone
    load.die()
    assert fault.heal() == gone
    with pytest.raises(ChaosError):
        fault.inject()
