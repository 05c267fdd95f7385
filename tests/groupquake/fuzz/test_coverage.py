"""What counts as covered, and what a campaign should see: by the rules, and by what is spoken."""

from dataclasses import fields

import pytest

from groupquake.fuzz.coverage import (
    ALLOWS_MORE,
    OUT_OF_REACH,
    expected_answers,
    expected_moves,
    flips,
    moot,
)
from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import Error
from loadtest.wire.connection import known
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import NEWEST, PROFILES

NEW = {api: known(api) for api in COORDINATOR_APIS}
OLD = NEW | {"SYNC_GROUP": (0, 4), "OFFSET_COMMIT": (0, 8), "DESCRIBE_GROUPS": (0, 5)}
FIRST = PROFILES["2.4.0"]
RULES = {field.name for field in fields(Profile)} - {"name", "settings"}


def test_every_rule_is_changed_alone_or_listed_as_out_of_reach() -> None:
    allows_more = {name.partition("=")[0] for name in ALLOWS_MORE}
    assert OUT_OF_REACH.keys() <= RULES
    for profile in PROFILES.values():
        changed = set()
        for rule, value, other in flips(profile):
            (differing,) = {r for r in RULES if getattr(other, r) != getattr(profile, r)}
            assert differing == rule
            assert value == as_text(getattr(other, rule))
            changed.add(rule)
        assert changed | allows_more == RULES - OUT_OF_REACH.keys()


def as_text(value: object) -> str:
    return value.name if isinstance(value, Error) else str(value).lower()


def test_an_uncontradicted_rule_has_the_value_of_some_release() -> None:
    values = {
        f"{rule}={as_text(getattr(profile, rule))}"
        for profile in PROFILES.values()
        for rule in RULES
    }
    assert ALLOWS_MORE.keys() <= values


def test_coverage_does_not_expect_undecided_rules() -> None:
    assert not moot(NEWEST, NEW, "4.0.0")
    assert moot(NEWEST, NEW, "4.1.0").keys() == {"answers_wait_for_writes"}
    old = NEW | {"OFFSET_COMMIT": (0, 8), "JOIN_GROUP": (0, 7)}
    assert moot(NEWEST, old, "4.0.0").keys() == {"commit_to_unknown_group_v9", "join_reason_counts"}
    rules = moot(PROFILES["2.4.1"], NEW, "2.4.1").keys()
    assert "refused_pending_stays" in rules
    assert rules >= {"sync_timer_spares_statics", "store_answers_latest_return"}


def test_every_reason_to_rebalance_is_one_that_a_run_should_see() -> None:
    moves = expected_moves(NEWEST, bulky=True)
    seen = {move.partition("(")[2].rstrip(")") for move in moves} - {""}
    after_a_load, never_released = Reason.OVER_CAPACITY, {Reason.JOIN_REASON, Reason.GROUP_CONFIG}
    assert seen == {str(reason) for reason in Reason} - {after_a_load, *never_released}


def test_old_rules_have_fewer_moves_and_records_of_a_usual_size_too() -> None:
    newest, first = set(expected_moves(NEWEST, bulky=True)), set(expected_moves(FIRST, bulky=False))
    assert first < newest
    assert {move.partition("(")[2] for move in newest - first} == {
        "assignment_error)",
        "pending_sync)",
        "protocol_change)",
        "static_replaced)",
    }


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
    assert (answer in set(expected_answers(NEWEST, NEW, bulky=True))) is new
    assert (answer in set(expected_answers(FIRST, OLD, bulky=True))) is first


def test_a_response_of_one_release_is_expected_there_only() -> None:
    failed = set(expected_answers(PROFILES["2.5.0"], OLD, bulky=True))
    assert "DESCRIBE_GROUPS UNSUPPORTED_VERSION" in failed
