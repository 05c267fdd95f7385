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


def joined(*members: tuple[str, str | None, str], **fields: bool | str) -> JoinResponse:
    return JoinResponse(0, members=frozenset(members), **fields)


def described(instance: str | None) -> DescribeResponse:
    member = DescribedMember("a", instance, "c", "h", "m", "s")
    return DescribeResponse(0, members=frozenset({member}))


FULL = joined(("a", "i", "m"), protocol_type="consumer", skip_assignment=True)


@pytest.mark.parametrize(
    ("version", "full", "sent"),
    [
        (4, FULL, joined(("a", None, "m"))),
        (5, FULL, joined(("a", "i", "m"))),
        (7, FULL, joined(("a", "i", "m"), protocol_type="consumer")),
        (9, FULL, FULL),
        (4, SyncResponse(0, "consumer", "range", "x"), SyncResponse(0, assignment="x")),
        (3, described("i"), described(None)),
    ],
)
def test_a_version_sends_only_the_fields_that_it_has(
    version: int, full: Response, sent: Response
) -> None:
    assert as_sent(full, version) == sent


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
            joined(("a", None, "m"), ("b", None, "m")),
            joined(("a", None, "n")),
            ("members", "[a (None, 'm'), b]", "[a (None, 'n')]"),
        ),
    ],
)
def test_a_difference_is_shown_by_field(
    expected: Response, observed: Response, shown: tuple[str, str, str]
) -> None:
    assert differences(expected, observed) == (shown,)
    assert differences(expected, expected) == ()
