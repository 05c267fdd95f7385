"""What counts as covered: rules by other profiles, answers by their error codes."""

from dataclasses import fields

import pytest

from groupquake.fuzz.coverage import ALLOWS_MORE, OUT_OF_REACH, errors_of, flips, moot
from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import Error
from loadtest.wire.schemas import known
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import NEWEST, PROFILES


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_rule_is_changed_alone_or_listed_as_out_of_reach(profile: Profile) -> None:
    changed = set()
    for flip in flips(profile):
        differing = {
            field.name
            for field in fields(Profile)
            if getattr(flip.profile, field.name) != getattr(profile, field.name)
        }
        assert differing == {flip.rule}
        assert getattr(flip.profile, flip.rule) == flip.value
        changed.add(flip.rule)
    rules = {field.name for field in fields(Profile)} - {"name", "settings"}
    allows_more = {name.partition("=")[0] for name in ALLOWS_MORE}
    assert changed | allows_more == rules - OUT_OF_REACH.keys()
    assert rules >= OUT_OF_REACH.keys()


def test_an_uncontradicted_rule_has_the_value_of_some_release() -> None:
    values = {
        f"{field.name}={getattr(getattr(profile, field.name), 'name', value).lower()}"
        for profile in PROFILES.values()
        for field in fields(Profile)
        for value in [str(getattr(profile, field.name))]
    }
    assert {name.lower() for name in ALLOWS_MORE} <= values


def test_errors_are_found_wherever_an_answer_has_them() -> None:
    leave = {
        "api": "LEAVE_GROUP",
        "response": {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "members": [
                {"memberId": "m", "groupInstanceId": None, "errorCode": Error.UNKNOWN_MEMBER_ID}
            ],
        },
    }
    assert list(errors_of(leave)) == ["LEAVE_GROUP NONE", "LEAVE_GROUP UNKNOWN_MEMBER_ID"]
    partition = {"partitionIndex": 0, "errorCode": Error.ILLEGAL_GENERATION}
    commit = {"api": "OFFSET_COMMIT", "response": {"topics": [{"partitions": [partition]}]}}
    assert list(errors_of(commit)) == ["OFFSET_COMMIT ILLEGAL_GENERATION"]
    assert list(errors_of({"api": "HEARTBEAT"})) == []
    assert list(errors_of({"format": "groupquake-events/1"})) == []


def test_coverage_does_not_expect_undecided_rules() -> None:
    new = {api: known(api) for api in COORDINATOR_APIS}
    assert not moot(NEWEST, new, "4.0.0")
    assert moot(NEWEST, new, "4.1.0").keys() == {"answers_wait_for_writes"}
    old = new | {"OFFSET_COMMIT": (0, 8), "JOIN_GROUP": (0, 7)}
    assert moot(NEWEST, old, "4.0.0").keys() == {"commit_to_unknown_group_v9", "join_reason_counts"}
    rules = moot(PROFILES["2.4.1"], new, "2.4.1").keys()
    assert "refused_pending_stays" in rules
    assert rules >= {"sync_timer_spares_statics", "store_answers_latest_return"}
