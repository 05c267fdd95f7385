"""Digests: what is counted of a group, by hand, and its way through JSON."""

from collections import Counter

import pytest

from reports.judgement.digest import Digest, Digester

PHASES = (("formation", 0.0), ("impact", 100.0), ("recovery", 200.0), ("teardown", 300.0))
DIGESTER = Digester(PHASES, 300.0, {"g": ("orders",)}, {"orders": 3, "other": 1})


def digest_of(*rows, group="g"):
    *passed, (name, made) = DIGESTER.digested(group, rows)
    assert passed == list(rows)
    assert name == "digests"
    return Digest.from_json(made["digest"])


def begun(at_ms, reason="leave", generation=1, members=2):
    row = {"started_ms": at_ms, "reason": reason, "generation": generation, "members": members}
    return "observed", row


def given(at_ms, *partitions, topics="orders"):
    return "assigned", {"at_ms": at_ms, "topics": topics, "partitions": ",".join(partitions)}


def test_rebalances_are_counted_by_phase_and_reason():
    found = digest_of(
        begun(1.0, "new_member"),
        begun(150.0),
        begun(199.9),
        begun(200.0, reason=None, members=0),
        begun(None),
        ("expected", {"started_ms": 150.0}),
        ("expected", {"started_ms": None}),
        ("comparison", {"outcome": "late"}),
        ("comparison", {"outcome": "match"}),
        ("violations", {}),
        ("member_lines", {}),
        ("expulsions", {"at_ms": 101.0, "api": ""}),
        ("expulsions", {"at_ms": 250.0, "api": "HEARTBEAT"}),
    )
    assert found.begun == {
        ("formation", "new_member"): 1, ("impact", "leave"): 2, ("recovery", ""): 1,
    }  # fmt: skip
    assert found.observed == {"formation": 1, "impact": 2, "recovery": 1}
    assert found.expected == {"impact": 1}
    assert found.generations == 4
    assert (found.evictions, found.fences) == ({"impact": 1}, {"recovery": 1})
    assert found.rows == Counter(
        observed=5, expected=2, comparison=2, violations=1, member_lines=1, expulsions=2
    )
    assert (found.different, found.wrong) == (1, 3)
    assert found.unowned is None


WHOLE = ("orders-0", "orders-1", "orders-2")


@pytest.mark.parametrize(
    ("rows", "unowned"),
    [
        ([given(10.0, "orders-0"), given(50.0, "orders-0", "orders-2")], ["orders-1"]),
        ([given(50.0, "orders-0"), given(10.0, "orders-1")], ["orders-1", "orders-2"]),
        ([given(50.0, *WHOLE), given(301.0, "orders-0")], []),
        ([begun(60.0), begun(20.0), begun(None), given(50.0, *WHOLE)], [*WHOLE]),
        ([begun(20.0), begun(310.0), given(50.0, *WHOLE)], []),
        ([given(301.0, "orders-0")], [*WHOLE]),
    ],
    ids=["the last", "however they come", "one too late", "a rebalance after it",
         "a rebalance before it", "nothing in time"],
)  # fmt: skip
def test_owners_are_those_of_the_last_assignment_before_the_load_is_stopped(rows, unowned):
    assert digest_of(*rows).unowned == unowned


def test_a_group_that_is_not_in_the_experiment_lacks_all_topics():
    late = given(301.0, "orders-0")
    assert digest_of(late, group="another").unowned == [*WHOLE, "other-0"]


def test_json_keeps_a_digest():
    digest = Digest(
        Counter({("impact", ""): 2, ("impact", "leave"): 1}), Counter(impact=3), 4,
        Counter(teardown=1), Counter(), Counter(joins=7), 5, ["orders-0"],
    )  # fmt: skip
    assert Digest.from_json(digest.to_json()) == digest
    assert Digest.from_json(Digest().to_json()) == Digest()
