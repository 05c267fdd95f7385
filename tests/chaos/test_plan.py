import json

from chaos.plan import Plan, make_plan
from scenarios.targets import LeaderMemberOf, Names

BOUNCE = "{fault: group.bounce, target: all, group: static, at: 3s, down_for: 2500ms, every: 5s}"
LEADER = "{fault: member.restart, target: {leader-member-of: static}, at: 4s, down_for: 650ms}"


def names_of(plan: Plan) -> list[str]:
    return [
        name
        for s in plan.steps
        if isinstance(s.planned.target, Names)
        for name in s.planned.target.names
    ]


def test_seeds_alone_decide_the_order_of_a_bounce_and_nothing_else(experiment):
    assert make_plan(experiment(BOUNCE, LEADER), 7) == make_plan(experiment(BOUNCE, LEADER), 7)
    plans = [make_plan(experiment(BOUNCE), seed) for seed in range(20)]
    assert len({tuple(names_of(plan)) for plan in plans}) > 5
    for plan in plans:
        assert sorted(names_of(plan)) == ["static-0", "static-1", "static-2", "static-3"]
        assert [step.at_ms for step in plan.steps] == [3000, 8000, 13000, 18000]


def test_a_bounce_in_waves_hits_everybody_once_a_round(experiment):
    waves = BOUNCE.replace("every: 5s", "every: 5s, at_once: 3, repeat: 2")
    plan = make_plan(experiment(waves), 7)
    assert [len(step.planned.target.names) for step in plan.steps] == [3, 1, 3, 1]
    assert [step.at_ms for step in plan.steps] == [3000, 8000, 13000, 18000]
    names = names_of(plan)
    assert sorted(names[:4]) == sorted(names[4:]) == [f"static-{n}" for n in range(4)]
    one_by_one = make_plan(experiment(BOUNCE), 7)
    assert names[:4] == names_of(one_by_one), "the order is that of a bounce without waves"


def test_a_plan_counts_a_wave_and_names_its_first_and_last(experiment):
    names = [f"static-{n}" for n in range(4)] + ["mixed-dynamic-0", "lone"]
    target = f"{{names: [{', '.join(names)}]}}"
    bounce = BOUNCE.replace("target: all, group: static", f"target: {target}")
    plan = make_plan(experiment(bounce.replace("every: 5s", "every: 5s, at_once: 6")), 7)
    (hits,) = [step.planned.hits for step in plan.steps]
    first, last = hits.removeprefix("6 members: ").split(" … ")
    assert first != last
    assert {first, last} < {*names}


def test_a_fault_draws_nothing_from_the_others(experiment):
    alone = make_plan(experiment(BOUNCE), 7)
    assert names_of(make_plan(experiment(BOUNCE, LEADER, BOUNCE), 7))[:1] == names_of(alone)[:1]
    beside = [s for s in make_plan(experiment(BOUNCE, LEADER), 7).steps if s.origin == "f1"]
    assert beside == list(alone.steps)


def test_a_bounce_becomes_restarts_and_a_role_stays_a_role(experiment):
    first, leader, *_ = make_plan(experiment(BOUNCE, LEADER), 7).steps
    assert (first.id, first.origin, first.fault) == ("f1.1", "f1", "member.restart")
    assert (first.cause, first.planned.args) == ("group.bounce", {"down_for_ms": 2500})
    assert (leader.id, leader.cause, leader.at_ms) == ("f2.1", None, 4000)
    assert leader.planned.target == LeaderMemberOf.model_validate({"leader-member-of": "static"})


RESTART = "{fault: member.restart, target: all, group: mixed, at: 1s, down_for: 2s, becomes: %s}"
KILL = "{fault: member.kill, target: {names: [lone]}, at: 1s, down_for: 2s}"
DUPLICATE = "{fault: member.duplicate-instance, target: {names: [lone]}, at: 1s, lasts: 1500ms}"
GROW = "{fault: topic.add-partitions, topic: orders, to: 18, at: 1s}"
REMOVE = "{fault: group.remove-members, group: static, instances: %s, at: 1s}"
COORDINATOR = "{fault: broker.%s, target: {coordinator-of: mixed}, at: 1s, down_for: 2s}"
PARTITION = "{fault: broker.restart, target: {partition-leader: orders/0}, at: 1s}"
NAMED = "{fault: broker.stop, target: {brokers: [1, 3]}, at: 1s, down_for: 2s}"
CONTROLLER = "{fault: broker.pause, target: controller, at: 1s, down_for: 2s}"
DOWN = {"down_for_ms": 2000}


STEPS = [
    (RESTART % "dynamic", {**DOWN, "becomes": "dynamic"},
     "all of mixed", "start again after 2 s as a dynamic member"),
    (RESTART % '{instance_id: "app-{n}"}', {**DOWN, "becomes": {"instance_id": "app-{n}"}},
     "all of mixed", "start again after 2 s as app-{n}"),
    (KILL, DOWN, "lone", "start again after 2 s"),
    (DUPLICATE, {"lasts_ms": 1500},
     "lone", "end the duplicate after 1.5 s, start the member afresh"),
    (REMOVE % "[static-0, ghost]", {"instances": ["static-0", "ghost"]},
     "static-0, ghost of static", "none"),
    (REMOVE % "all", {"instances": "all"}, "all static members of static", "none"),
    (COORDINATOR % "kill", DOWN, "coordinator-of: mixed", "start again after 2 s"),
    (GROW, {"topic": "orders", "to": 18}, "orders, to 18", "none"),
    (PARTITION, {}, "partition-leader: orders/0", "start again at once"),
    (NAMED, DOWN, "broker-1, broker-3", "start again after 2 s"),
    (CONTROLLER, DOWN, "controller", "resume after 2 s"),
]  # fmt: skip
"""A fault, the arguments of its step, what it hits and what undoes it."""


def test_every_fault_has_a_step_with_its_arguments_and_texts(experiment):
    for fault, args, hits, undo in STEPS:
        plan = make_plan(experiment(fault), 7)
        [step] = plan.steps
        assert (step.planned.args, step.planned.hits, step.planned.undo) == (args, hits, undo)
        [row] = plan.describe()[2:]
        assert all(cell in row for cell in ("f1.1", "1 s", step.fault, hits, undo))


def test_the_json_of_a_plan_has_the_values_of_the_file(experiment):
    bounce = BOUNCE.replace("every: 5s", "every: 5s, becomes: dynamic")
    faults = (bounce, COORDINATOR % "stop", REMOVE % "[ghost]")
    written = json.loads(json.dumps(make_plan(experiment(*faults), 7).as_dict()))
    coordinator, remove, first, *_ = written["steps"]
    assert (written["experiment"], written["seed"], len(written["steps"])) == ("small", 7, 6)
    assert coordinator == {
        "id": "f2.1", "at_ms": 1000, "when": None, "fault": "broker.stop", "cause": None,
        "group": None, "target": {"coordinator-of": "mixed"}, "allow_empty": False,
        "args": {"down_for_ms": 2000}, "undo": "start again after 2 s",
    }  # fmt: skip
    assert (remove["group"], remove["target"]) == ("static", None)
    assert remove["args"] == {"instances": ["ghost"]}
    assert first["args"] == {"down_for_ms": 2500, "becomes": "dynamic"}
    assert list(first["target"]) == ["names"]


def test_the_description_is_a_table(experiment):
    bounce = BOUNCE.replace("target: all, group: static", "target: {names: [lone]}").replace(
        "2500ms", "2s"
    )
    leader = LEADER.replace("static", "mixed").replace("650ms", "1s")
    assert make_plan(experiment(bounce, leader), 7).describe() == [
        "small, seed 7: 2 steps",
        "step  at   fault                          target                   undo",
        "f1.1  3 s  member.restart (group.bounce)  lone                     start again after 2 s",
        "f2.1  4 s  member.restart                 leader-member-of: mixed  start again after 1 s",
    ]
    assert make_plan(experiment(), 7).describe() == [
        *("small, seed 7: 0 steps", "step  at  fault  target  undo")
    ]


ROLLING = "{fault: broker.rolling-restart, at: 1s, every: 4s%s}"


def test_a_rolling_restart_takes_each_broker_once_a_round(experiment):
    plans = [make_plan(experiment(ROLLING % ", repeat: 2"), seed) for seed in range(9)]
    orders = set()
    for plan in plans:
        order = [broker for step in plan.steps for broker in step.planned.target.brokers]
        assert sorted(order[:3]) == sorted(order[3:]) == [1, 2, 3]
        assert [step.at_ms for step in plan.steps] == [1000, 5000, 9000, 13000, 17000, 21000]
        assert {(step.fault, step.cause) for step in plan.steps} == {
            ("broker.restart", "broker.rolling-restart")
        }
        orders.add(tuple(order))
    assert len(orders) > 2
    [first, *_] = make_plan(experiment(ROLLING % ", down_for: 2s"), 1).steps
    assert (first.fault, first.planned.args) == ("broker.stop", {"down_for_ms": 2000})


def test_a_fault_is_repeated_so_often_or_through_the_impact_phase(experiment):
    often = KILL.replace("at: 1s", "at: 1s, every: 3s")
    steps = make_plan(experiment(often, impact="10s"), 1).steps
    assert [(step.id, step.at_ms) for step in steps] == [
        *(("f1.1", 1000), ("f1.2", 4000), ("f1.3", 7000), ("f1.4", 10_000))
    ]
    twice = often.replace("every: 3s", "every: 3s, repeat: 2")
    steps = make_plan(experiment(twice, impact="10s"), 1).steps
    assert [step.at_ms for step in steps] == [1000, 4000]
    assert {(step.origin, step.what.repeat, step.what.every_ms) for step in steps} == {
        ("f1", None, None)
    }


def test_the_plan_shows_what_a_fault_waits_for(experiment):
    fault = KILL.replace("at: 1s", "at: 1s, when: {group: mixed, state: PreparingRebalance}")
    plan = make_plan(experiment(fault), 1)
    [row] = plan.describe()[2:]
    assert "1 s, when mixed is PreparingRebalance  member.kill" in row
    assert plan.as_dict()["steps"][0]["when"] == {
        "group": "mixed", "state": "PreparingRebalance", "within": "1m"
    }  # fmt: skip
