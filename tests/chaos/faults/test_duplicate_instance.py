import pytest

from chaos.errors import LoadGoneError
from chaos.faults.duplicate_instance import DuplicateInstance
from tests.chaos.fakes import until


@pytest.fixture
def duplicate(members, evidence) -> DuplicateInstance:
    return DuplicateInstance("static-3", "static", 150, evidence, members)


def test_the_newer_one_is_let_in_and_the_older_one_fenced(load, duplicate, stop):
    assert duplicate.undo == {"do": "end-duplicate", "member": "static-3"}
    duplicate.inject()
    until(lambda: '"errorCode":82' in load.log.path.read_text())
    broken = duplicate.verify()
    assert broken.holds
    place = "group.log of broker 1, line "
    assert broken.evidence.startswith(f"JOIN_GROUP of static-3.duplicate answered NONE ({place}")
    assert f", HEARTBEAT of static-3 FENCED_INSTANCE_ID ({place}" in broken.evidence
    assert "started afresh" in duplicate.heal()
    assert duplicate.verify_healed(stop).holds
    assert load.is_up("static-3")
    assert not load.is_up("static-3.duplicate")


def test_a_duplicate_that_never_joins_is_not_verified(load, duplicate):
    load.lost.add("static-3.duplicate")
    duplicate.inject()
    broken = duplicate.verify()
    assert not broken.holds
    assert broken.evidence == "no JOIN_GROUP of static-3.duplicate was answered NONE"


def test_a_member_that_is_not_fenced_is_reported(load, duplicate):
    load.unnoticed.add("static-3")
    duplicate.inject()
    until(lambda: "static-3.duplicate" in load.log.path.read_text())
    broken = duplicate.verify()
    assert not broken.holds
    assert "no request of static-3 as static-3 was answered FENCED_INSTANCE_ID" in broken.evidence


def test_a_load_process_that_is_gone_took_the_duplicate_along(load, duplicate):
    duplicate.inject()
    load.die()
    assert duplicate.heal() == (
        "nothing to undo: the load process is gone, its members and their duplicates with it"
    )
    with pytest.raises(LoadGoneError):
        duplicate.inject()
