"""Reduction: what is left fails for the same root, and nothing more of it can go."""

from collections import Counter
from typing import Any

import pytest

from chaos.plan import make_plan
from groupquake.shrink.reduction import Reduction, written
from groupquake.shrink.root import Root, missed, of_forecast, of_verdict
from groupquake.simulate.forecast import foresee
from groupquake.simulate.tally import Tally
from scenarios import Experiment
from tests.groupquake.simulate.test_forecast import bounce, expecting

UNRELATED: list[dict[str, Any]] = [
    {"fault": "coordinator.move", "group": "shop", "at": "3s"},
    {"fault": "topic.add-partitions", "topic": "orders", "to": 9, "at": "20s"},
    {"fault": "member.kill", "target": {"names": ["shop-0"]}, "at": "30s", "down_for": "2s"},
]


def failing() -> Experiment:
    """Return an experiment whose members are away 10 s with a session of 6 s, and other faults."""
    return expecting(0, UNRELATED[0], bounce(down_for="10s"), *UNRELATED[1:])


def courses(experiment: Experiment) -> list[list[Root]]:
    return of_forecast(foresee(experiment, make_plan(experiment, 1)))


def shrunk(experiment: Experiment, root: Root) -> list[Experiment]:
    reduction = Reduction(experiment, lambda one: all(map(root.is_in, courses(one))))
    steps = make_plan(experiment, 1).steps
    return reduction.run(faults=[written(step.what) for step in steps])


def test_the_smallest_that_a_simulation_fails_for_is_one_fault_of_one_member() -> None:
    root = courses(failing())[0][0]
    assert root.commonest == {"session_expired", "new_member"}
    *_, smallest = shrunk(failing(), root)
    (step,) = make_plan(smallest, 1).steps
    assert (step.fault, step.what.target.names) == ("member.restart", ("shop-0",))
    assert len(smallest.members()) == 1
    assert 6_000 <= step.what.down_for_ms <= 7_000, "the session is 6 s"
    assert smallest.phases.impact_ms < 10_000
    assert shrunk(failing(), root)[-1] == smallest, "it is deterministic"


def test_nothing_more_of_what_is_left_can_go_and_nothing_is_tried_twice() -> None:
    tried = []

    def fails(one: Experiment) -> bool:
        """Two kills for 4 s or more, and two members."""
        tried.append(one.dump())
        kills = [f for f in one.faults if f.fault == "member.kill" and f.down_for_ms >= 4_000]
        return len(kills) >= 2 and len(one.members()) >= 2

    kill = {"fault": "member.kill", "target": "all", "group": "shop", "at": "4s", "down_for": "9s"}
    whole = expecting(0, *UNRELATED, kill, kill, kill)
    *_, smallest = Reduction(whole, fails).run()
    faults = [one.model_dump(mode="json", exclude_none=True) for one in smallest.faults]
    left = {"at_ms": "500ms", "down_for_ms": "4s", "target": {"names": ["shop-0"]}}
    assert [{key: one[key] for key in left} for one in faults] == [left, left]
    assert len(smallest.members()) == 2
    assert len(tried) == len(set(tried))


COUNTED = {"session_expired": 3, "new_member": 2, "leave": 1}


def tallies(impact: dict[str, int]) -> dict[str, Tally]:
    counts = {("impact", why): n for why, n in impact.items()}
    return {"shop": Tally(Counter(counts | {("recovery", "new_member"): 1}))}


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({"session_expired": 1, "new_member": 1}, True),
        ({"session_expired": 1}, False),
        ({"leave": 4}, False),
        ({}, False),
    ],
)
def test_too_many_rebalances_have_the_commonest_reasons_again(
    other: dict[str, int], *, same: bool
) -> None:
    experiment = expecting(0, bounce())
    (root,) = missed(experiment, tallies(COUNTED))
    assert root.is_in(list(missed(experiment, tallies(other)))) == same


def finding(kind: str = "wrong_answer", group: str = "shop", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "group": group, "root": True, "proven": True} | more


def verdict(*findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "verdict": "fail", "judge": "kip-345", "broken_promises": {}, "groups": {},
        "findings": list(findings), "expectations_unmet": [],
    } | more  # fmt: skip


def test_the_root_of_a_finding_is_the_promise_that_is_broken_else_its_kind() -> None:
    experiment = expecting(0, bounce()).override(["expect=[]"])
    broken = {"broken_promises": {"shop": ["return_is_stored"]}}
    known = [
        (verdict(finding(), **broken), [Root("shop, return_is_stored")]),
        (verdict(finding(), **broken, judge="release"), [Root("shop, wrong_answer")]),
        (verdict(finding(root=False)), []),
        (verdict(finding(proven=False)), []),
        (verdict(finding(), verdict="unknown"), []),
    ]
    for given, roots in known:
        assert of_verdict(given, experiment) == roots
    owners = [{"group": "shop", "what": "partitions without owner", "phase": "the end"}]
    assert of_verdict(verdict(expectations_unmet=owners), experiment) == [
        Root("shop, partitions without owner")
    ]
