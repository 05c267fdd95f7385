"""What a run should see at least, by the rules of the coordinator and what it speaks."""

import pytest

from groupquake.fuzz.expected_coverage import answers, moves
from kafka_protocol.apis import COORDINATOR_APIS
from loadtest.wire.schemas import known
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.releases import NEWEST, PROFILES

NEW = {api: known(api) for api in COORDINATOR_APIS}
OLD = NEW | {"SYNC_GROUP": (0, 4), "OFFSET_COMMIT": (0, 8), "DESCRIBE_GROUPS": (0, 5)}
FIRST = PROFILES["2.4.0"]


def test_every_reason_to_rebalance_is_one_that_a_run_should_see() -> None:
    seen = {move.partition("(")[2].rstrip(")") for move in moves(NEWEST, bulky=True)} - {""}
    after_a_load, never_released = Reason.OVER_CAPACITY, Reason.JOIN_REASON
    assert seen == {str(reason) for reason in Reason} - {after_a_load, never_released}


def test_old_rules_have_fewer_moves_and_records_of_a_usual_size_too() -> None:
    gone = set(moves(NEWEST, bulky=True)) - set(moves(FIRST, bulky=False))
    assert {move.partition("(")[2] for move in gone} == {
        "assignment_error)",
        "pending_sync)",
        "protocol_change)",
        "static_replaced)",
    }
    assert set(moves(FIRST, bulky=False)) < set(moves(NEWEST, bulky=True))


@pytest.mark.parametrize(
    ("answer", "new", "first"),
    [
        ("SYNC_GROUP INCONSISTENT_GROUP_PROTOCOL", True, False),
        ("OFFSET_COMMIT GROUP_ID_NOT_FOUND", True, False),
        ("DESCRIBE_GROUPS GROUP_ID_NOT_FOUND", True, False),
        ("DESCRIBE_GROUPS UNSUPPORTED_VERSION", False, False),
        ("OFFSET_COMMIT INVALID_COMMIT_OFFSET_SIZE", False, True),
        ("JOIN_GROUP UNKNOWN_SERVER_ERROR", True, False),
        ("JOIN_GROUP FENCED_INSTANCE_ID", True, True),
    ],
)
def test_a_response_is_expected_only_where_it_is_possible(
    answer: str, new: bool, first: bool
) -> None:
    assert (answer in set(answers(NEWEST, NEW, bulky=True))) is new
    assert (answer in set(answers(FIRST, OLD, bulky=True))) is first


def test_a_response_of_one_release_is_expected_there_only() -> None:
    failed = PROFILES["2.5.0"]
    assert "DESCRIBE_GROUPS UNSUPPORTED_VERSION" in set(answers(failed, OLD, bulky=True))
