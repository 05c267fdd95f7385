import time

import pytest

from chaos.faults.member_restart import MemberRestart
from tests.chaos.fakes import until


@pytest.fixture
def restart(members, evidence):
    def make(**identity: str | None) -> MemberRestart:
        return MemberRestart("static-3", "static", 150, evidence, members, identity)

    return make


@pytest.mark.parametrize("becomes", ["app-3-thread-1", None])
def test_a_member_may_restart_with_another_identity(load, restart, stop, becomes):
    fault = restart(instance_id=becomes)
    assert fault.undo == {"do": "start", "member": "static-3", "instance_id": becomes}
    assert fault.details == {"instance_id": becomes}
    fault.inject()
    time.sleep(0.15)
    assert fault.verify().holds
    assert fault.heal() == "started over the control channel"
    back = fault.verify_healed(stop)
    assert back.holds
    assert back.evidence.endswith(f"as {becomes or 'a dynamic member'}")


def test_a_restart_with_the_old_identity_is_not_the_new_one(load, restart, stop, monkeypatch):
    fault = restart(instance_id="app-3-thread-1")
    fault.inject()
    fault.heal()
    until(lambda: load.is_up("static-3"))
    fault.verify_healed(stop)
    plain = restart()
    assert (plain.undo, plain.details) == ({"do": "start", "member": "static-3"}, {})
    plain.inject()
    plain.heal()
    assert plain.verify_healed(stop).holds
    wrong = restart(instance_id="another")
    wrong.inject()
    monkeypatch.setattr(wrong, "_members", plain._members)
    monkeypatch.setattr(type(plain._members), "start", _forgetful(type(plain._members).start))
    wrong.heal()
    back = wrong.verify_healed(stop)
    assert not back.holds
    assert back.evidence.endswith("but as app-3-thread-1, not as another")


def _forgetful(start):
    return lambda members, member, _: start(members, member)
