import pytest

from chaos import fault_runner
from chaos.journal import Journal, open_faults, read


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def intend(path, **undo) -> None:
    with Journal(path) as journal:
        journal.write("intent", fault_id="f1.1", kind="recoverable", undo=undo)


def heal(path):
    with Journal(path) as journal:
        return fault_runner.heal(journal)


@pytest.mark.parametrize(
    "do",
    [
        *("start-broker", "resume-broker", "join-broker", "unslow-broker"),
        *("free-disk", "thaw-disk", "set-clock"),
    ],
)
def test_a_broker_is_gone_with_its_cluster(path, do):
    intend(path, do=do, broker=2)
    [healed] = heal(path)
    how = "nothing to undo: broker 2 ends with all that is left of its cluster"
    assert healed == ("f1.1", True, how)
    assert open_faults(read(path)) == ()


def test_a_load_process_that_died_too_leaves_nothing_to_undo(path):
    with Journal(path) as journal:
        for number in (1, 2):
            undo = {"do": "start", "member": "static-3"}
            journal.write("intent", fault_id=f"f1.{number}", kind="recoverable", undo=undo)
    results = heal(path)
    assert [(result.fault_id, result.healed) for result in results] == [
        ("f1.2", True),
        ("f1.1", True),
    ]
    assert results[0].how == ("nothing to undo: the load process is gone, and its members with it")
    assert open_faults(read(path)) == ()


def test_an_intent_without_an_undo_stays_open(path):
    with Journal(path) as journal:
        journal.write("intent", fault_id="f1.1", kind="recoverable")
    [result] = heal(path)
    assert not result.healed
    assert "does not know how to undo" in result.how


def test_what_healing_cannot_do_stays_open(path):
    intend(path, do="reroute-broker", broker=2)
    [unknown] = heal(path)
    assert (unknown.healed, "does not know how to undo" in unknown.how) == (False, True)
    assert len(open_faults(read(path))) == 1
