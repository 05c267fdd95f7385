"""Comparing the oracle's responses with those that brokers gave."""

import pytest

from reference_coordinator.classic.bodies import as_sent
from reference_coordinator.classic.effects import (
    DescribedMember,
    DescribeResponse,
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    Response,
    SyncResponse,
)
from reference_coordinator.replay.candidates import differences

JOINED = JoinResponse(
    0, "a", 1, "consumer", skip_assignment=True, members=frozenset({("a", "i", "m")})
)


@pytest.mark.parametrize(
    ("version", "protocol_type", "skips", "instance"),
    [
        (4, None, False, None),
        (5, None, False, "i"),
        (7, "consumer", False, "i"),
        (9, "consumer", True, "i"),
    ],
)
def test_a_version_sends_only_the_fields_that_it_has(
    *, version: int, protocol_type: str | None, skips: bool, instance: str | None
) -> None:
    sent = as_sent(JOINED, version)
    assert isinstance(sent, JoinResponse)
    assert (sent.protocol_type, sent.skip_assignment) == (protocol_type, skips)
    assert sent.members == {("a", instance, "m")}


def test_old_versions_name_no_protocol_in_sync_and_no_instance_in_describe() -> None:
    assert as_sent(SyncResponse(0, "consumer", "range", "x"), 4) == SyncResponse(0, assignment="x")
    member = DescribedMember("a", "i", "c", "h", "m", "s")
    described = as_sent(DescribeResponse(0, members=frozenset({member})), 3)
    assert isinstance(described, DescribeResponse)
    assert [each.group_instance_id for each in described.members] == [None]


@pytest.mark.parametrize(
    ("expected", "observed", "shown"),
    [
        (HeartbeatResponse(0), HeartbeatResponse(27), ("error", "NONE", "REBALANCE_IN_PROGRESS")),
        (
            LeaveResponse(0, (("a", None, 0),)),
            LeaveResponse(0, (("", "i", 25),)),
            ("members", "[a: NONE]", "[i: UNKNOWN_MEMBER_ID]"),
        ),
        (
            JoinResponse(0, members=frozenset({("a", None, "m"), ("b", None, "m")})),
            JoinResponse(0, members=frozenset({("a", None, "n")})),
            ("members", "[a (None, 'm'), b]", "[a (None, 'n')]"),
        ),
    ],
)
def test_a_difference_is_shown_by_field(
    expected: Response, observed: Response, shown: tuple[str, str, str]
) -> None:
    assert differences(expected, observed) == (shown,)
    assert differences(expected, expected) == ()
