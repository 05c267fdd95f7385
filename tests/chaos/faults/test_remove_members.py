import pytest

from chaos.faults.remove_members import RemoveMembers
from chaos.removal import Removal
from kafka_protocol.errors import Error

GHOST = {"static-0": 0, "ghost": 25}


@pytest.fixture
def removal(load, witness):
    """Makes a removal whose answer and whose trace in the log may differ."""

    def make(logged: dict[str, int] | None, answer: int = 0, error: int = 0, group: str = "static"):
        def remove(instances):
            if logged is not None:
                load.log.request(
                    "groupquake-f1.1", "LEAVE_GROUP", group=group, error=error, removed=logged
                )
            return Removal(answer, tuple(GHOST.items()))

        return RemoveMembers("static", ["static-0", "ghost"], "groupquake-f1.1", remove, witness)

    return make


def test_a_removal_is_in_the_log_with_an_answer_for_each(removal, stop):
    fault = removal(GHOST)
    assert (fault.kind, fault.target, fault.group) == ("one-shot", "static-0, ghost", "static")
    assert fault.details == {"instances": ["static-0", "ghost"]}
    fault.inject()
    found = fault.verify(stop)
    assert found.holds
    assert found.evidence.startswith("LEAVE_GROUP of groupquake-f1.1 answered NONE (group.log of")
    assert found.evidence.endswith(", static-0: NONE, ghost: UNKNOWN_MEMBER_ID")


@pytest.mark.parametrize(
    "trace", [{"logged": {"static-0": 0}}, {"logged": {**GHOST, "static-1": 0}},
              {"logged": GHOST, "group": "mixed"}]
)  # fmt: skip
def test_a_removal_of_others_is_not_this_one(removal, stop, trace):
    fault = removal(**trace)
    fault.inject()
    assert not fault.verify(stop).holds


@pytest.mark.parametrize(
    ("trace", "responses"),
    [
        ({"logged": None}, ""),
        (
            {"logged": GHOST, "error": Error.NOT_COORDINATOR},
            "; one was answered NOT_COORDINATOR (group.log of broker",
        ),
    ],
)
def test_a_removal_that_no_broker_logged_is_not_verified(
    removal, stop, monkeypatch, trace, responses
):
    monkeypatch.setattr("chaos.faults.remove_members._LOGGED_WITHIN_MS", 50)
    fault = removal(**trace)
    fault.inject()
    found = fault.verify(stop)
    missing = "no LEAVE_GROUP of groupquake-f1.1 answered NONE in any group.log within 50 ms"
    assert not found.holds
    assert found.evidence.partition(" 1, line")[0] == missing + responses


def test_a_refusal_is_reported(removal, stop):
    fault = removal(None, answer=69)
    fault.inject()
    found = fault.verify(stop)
    assert (found.holds, found.evidence) == (False, "LEAVE_GROUP was answered GROUP_ID_NOT_FOUND")


def test_the_end_of_the_run_ends_the_wait_for_the_log(removal, stop):
    fault = removal(None)
    fault.inject()
    stop.set()
    assert not fault.verify(stop).holds
