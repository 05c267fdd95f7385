import threading

import pytest

from chaos.errors import ChaosError, WorkerGoneError
from chaos.faults import heal_from_journal
from chaos.faults.member_evidence import MemberEvidence
from chaos.faults.swap_instance import SwapInstance, restart_as
from chaos.journal import now_ms
from tests.chaos.fakes import until

OWN = {"static-2": "static-2", "static-3": "static-3"}


@pytest.fixture
def fault(members, witness, stop):
    evidence = {name: MemberEvidence(name, 50, 300, witness, lambda _: True) for name in OWN}
    return SwapInstance(OWN, "static", 100, evidence, members, stop)


def test_two_members_exchange_their_ids_and_get_them_back(fault, load, stop):
    assert (fault.target, fault.details) == ("static-2, static-3", {"members": list(OWN)})
    fault.inject()
    assert load.ordered("stop") == load.ordered("start") == list(OWN)
    assert [do for do, *_ in load.orders] == ["stop", "stop", "start", "start"]
    until(lambda: all(map(load.is_up, OWN)))
    swapped = fault.verify()
    assert swapped.holds, swapped.evidence
    assert "static-2: JOIN_GROUP" in swapped.evidence
    assert ", as static-3; static-3: JOIN_GROUP" in swapped.evidence
    assert fault.heal().startswith("both restarted with their own")
    back = fault.verify_healed(stop)
    assert (back.holds, back.evidence.endswith(", as static-3")) == (True, True)


def test_a_member_that_came_with_its_own_id_is_not_swapped(fault, load, members, stop):
    fault.inject()
    restart_as(OWN, members)
    until(lambda: all(map(load.is_up, OWN)))
    found = fault.verify()
    assert (found.holds, "but as static-2, not as static-3" in found.evidence) == (False, True)


def test_both_get_their_ids_however_often_that_is_done(fault, load):
    fault.inject()
    for _ in range(2):
        assert fault.heal().startswith("both restarted")
    load.refused.add("static-3")
    with pytest.raises(ChaosError, match="refused"):
        fault.heal()
    load.die()
    assert fault.heal() == heal_from_journal(fault.undo)


def test_the_end_of_the_run_ends_the_wait_for_the_swap(members, witness, load, stop):
    slow = {name: MemberEvidence(name, 50, 300_000, witness, lambda _: True) for name in OWN}
    fault = SwapInstance(OWN, "static", 100, slow, members, stop)
    load.lost |= set(OWN)
    joined_ms = now_ms()
    until(lambda: now_ms() > joined_ms)  # what joined before it does not count as its return
    fault.inject()
    threading.Timer(0.2, stop.set).start()
    found = fault.verify()
    assert (found.holds, "as the run was ended" in found.evidence) == (False, True)


@pytest.mark.parametrize("lost", list(OWN))
def test_a_member_whose_worker_is_there_gets_its_id_though_the_other_is_lost(
    fault, load, stop, lost
):
    """The other's worker is lost before the swap, and takes the swap with it."""
    [there] = [member for member in OWN if member != lost]
    load.gone = {lost}
    with pytest.raises(WorkerGoneError):
        fault.inject()
    how = fault.heal()
    assert how.startswith(f"{there} restarted with its own")
    assert f"{lost}: nothing to undo: the worker of the load is gone" in how
    until(lambda: load.is_up(there))
    found = fault.verify_healed(stop)
    assert (found.holds, found.evidence.endswith(f"; {lost}: lost with its worker")) == (
        False,
        True,
    )
    assert f"{there}: JOIN_GROUP" in found.evidence
    assert f", as {there};" in found.evidence


def test_a_swapped_member_gets_its_id_back_though_the_other_is_lost(fault, load, stop):
    fault.inject()
    until(lambda: all(map(load.is_up, OWN)))
    load.gone = {"static-2"}
    assert fault.heal().startswith("static-3 restarted with its own")
    until(lambda: load.is_up("static-3"))
    load.gone = set(OWN)
    assert fault.heal() == "nothing to undo: the worker of the load is gone that ran the member"
