import json

import pytest

from chaos.errors import ChaosError
from chaos.plan import Plan, make_plan
from scenarios import LeaderMemberOf, Names

BOUNCE = "{fault: group.bounce, target: all, group: static, at: 3s, down_for: 2500ms, every: 5s}"
LEADER = "{fault: member.restart, target: {leader-member-of: static}, at: 4s, down_for: 650ms}"


def names_of(plan: Plan) -> list[str]:
    return [name for s in plan.steps if isinstance(s.target, Names) for name in s.target.names]


def test_the_same_seed_gives_the_same_plan(experiment):
    assert make_plan(experiment(BOUNCE, LEADER), 7) == make_plan(experiment(BOUNCE, LEADER), 7)


def test_seeds_differ_in_the_order_of_a_bounce_and_in_nothing_else(experiment):
    plans = [make_plan(experiment(BOUNCE), seed) for seed in range(20)]
    assert len({tuple(names_of(plan)) for plan in plans}) > 5
    for plan in plans:
        assert sorted(names_of(plan)) == ["static-0", "static-1", "static-2", "static-3"]
        assert [step.at_ms for step in plan.steps] == [3000, 8000, 13000, 18000]


def test_a_fault_draws_nothing_from_the_others(experiment):
    alone = make_plan(experiment(BOUNCE), 7)
    assert names_of(make_plan(experiment(BOUNCE, LEADER, BOUNCE), 7))[:1] == names_of(alone)[:1]
    beside = [s for s in make_plan(experiment(BOUNCE, LEADER), 7).steps if s.origin == "f1"]
    assert beside == list(alone.steps)


def test_a_bounce_becomes_restarts_and_a_role_stays_a_role(experiment):
    first, leader, *_ = make_plan(experiment(BOUNCE, LEADER), 7).steps
    assert (first.id, first.origin, first.at_ms) == ("f1.1", "f1", 3000)
    assert (first.fault, first.cause) == ("member.restart", "group.bounce")
    assert first.args == {"down_for_ms": 2500}
    assert (leader.id, leader.cause, leader.at_ms) == ("f2.1", None, 4000)
    assert leader.target == LeaderMemberOf.model_validate({"leader-member-of": "static"})


@pytest.mark.parametrize("target", ["all", "{leader-member-of: static}", "{names: [lone]}"])
def test_a_plan_survives_json(experiment, target):
    group = ", group: mixed" if target == "all" else ""
    fault = f"{{fault: member.restart, target: {target}{group}, at: 1s, down_for: 2s}}"
    plan = make_plan(experiment(BOUNCE, fault), 7)
    assert Plan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan


@pytest.mark.parametrize("broken", [{}, {"experiment": "x", "seed": 1, "steps": [{"id": "f1.1"}]}])
def test_what_is_no_plan_is_said_to_be_none(broken):
    with pytest.raises(ChaosError, match="not a plan"):
        Plan.from_dict(broken)


def test_the_description_is_a_table(experiment):
    bounce = BOUNCE.replace("target: all, group: static", "target: {names: [lone]}").replace(
        "2500ms", "2s"
    )
    leader = LEADER.replace("static", "mixed").replace("650ms", "1s")
    assert make_plan(experiment(bounce, leader), 7).describe().splitlines() == [
        "small, seed 7: 2 steps",
        "step  at   fault                          target                   undo",
        "f1.1  3 s  member.restart (group.bounce)  lone                     start again after 2 s",
        "f2.1  4 s  member.restart                 leader-member-of: mixed  start again after 1 s",
    ]


def test_an_experiment_without_faults_has_a_plan_without_steps(experiment):
    assert (
        make_plan(experiment(), 7).describe()
        == "small, seed 7: 0 steps\nstep  at  fault  target  undo"
    )
