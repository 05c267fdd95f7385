"""A course of events, as far as it is more than its counts."""

from chaos.plan import make_plan
from groupquake.simulate.chance import Chance
from groupquake.simulate.course import Course
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.driving.client import SYNCING
from tests.groupquake.simulate.test_forecast import experiment


def test_a_member_that_is_replaced_hears_of_it_with_its_next_heartbeat() -> None:
    """It is fenced and ends, and its duplicate goes on (KIP-345)."""
    fault = {"fault": "member.duplicate-instance", "at": "1s", "lasts": "9s",
             "target": {"names": ["shop-1"]}}  # fmt: skip
    given = experiment(fault)
    course = Course(given, make_plan(given, 1), NEWEST, Chance("1"))
    group = course.groups["shop"]
    seen: list[set[str]] = []

    def look() -> None:
        seen.append(set(group.called))
        if group.phase != "teardown":
            course.agenda.after(100, look)

    course.agenda.after(0, look)
    course.run()
    assert {"shop-0", "shop-1.duplicate", "shop-2"} in seen


def test_a_member_that_is_frozen_with_a_request_open_awaits_the_answer_as_it_goes_on() -> None:
    """It sends no heartbeat meanwhile, and does not leave."""
    given = experiment(kind="dynamic")
    course = Course(given, make_plan(given, 1), NEWEST, Chance("1"))
    group = course.groups["shop"]
    frozen: dict[str, str] = {}

    def look() -> None:
        for name, process in [*group.called.items()]:
            if process.client.phase is SYNCING and name not in frozen:
                frozen[name] = process.client.request
                group.freeze(name)
                group.resume(name)
            if process.client.phase is SYNCING:
                assert process.client.request == frozen[name]
        if group.phase == "formation":
            course.agenda.after(1, look)

    course.agenda.after(0, look)
    course.run()
    assert len(frozen) == len(group.specs)
    assert group.tally.count(None, "leave") == group.tally.count("teardown", "leave")
