"""The page of a forecast is the report's own timeline, of a course that was never run."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from chaos.plan import make_plan
from groupquake.simulate.forecast import courses, foresee, profile_of
from groupquake.simulate.page import HEATS, render
from groupquake.simulate.recorded import RecordedCourse
from groupquake.simulate.sweep import Sweep
from groupquake.simulate.tally import Tally
from kafka_protocol.consumer_protocol import TopicPartition
from reports.judgement.run.forecast import Interval
from tests.groupquake.conftest import Command
from tests.groupquake.simulate.test_forecast import SIZE, bounce, expecting, experiment
from tests.reports.reading import Page


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return a file whose members are away longer than their session."""
    file = tmp_path / "deploy.yaml"
    file.write_text(expecting(0, bounce(down_for="10s")).dump())
    return str(file)


def test_the_page_is_marked_and_says_what_is_expected(
    groupquake: Command, file: str, tmp_path: Path
) -> None:
    """It has the report's figures, and no time of day."""
    made = tmp_path / "page.html"
    done = groupquake("simulate", file, "--page", str(made), "--sweep", "session_timeout=6s,20s")
    assert done.code == 0
    page = Page(made.read_text())
    assert page.text.startswith("EXPECTED deploy Foreseen by the reference coordinator")
    assert "expect: 0 rebalances of shop in impact, but 6 are due" in page.text
    assert "static, eager: 20s is the smallest session timeout" in page.text
    assert "static, eager session_timeout 6s 6 20s 0" in page.text
    assert list(page.figures) == ["timeline"]
    assert {*page.figures} <= {*page.ids}
    (block,) = page.figure["blocks"]
    assert [row["name"] for row in block["rows"]] == ["expected", "shop-0", "shop-1", "shop-2"]
    assert page.figure["axis"]["zero_ms"] is None
    assert "UTC" not in page.text + str(page.figures)


def test_a_page_that_cannot_be_written_is_one_line(groupquake: Command, file: str) -> None:
    """With exit code 64."""
    done = groupquake("simulate", file, "--page", "nowhere/page.html")
    assert done.code == 64
    assert "nowhere/page.html: cannot be written" in done.err.splitlines()[-1]


def test_three_axes_are_a_table_alone(groupquake: Command, file: str, tmp_path: Path) -> None:
    """A map has two at most."""
    made = tmp_path / "page.html"
    axes = ("session_timeout=6s,20s", "down_for=4s,5s", "heartbeat_interval=1s,2s")
    options = [option for axis in axes for option in ("--sweep", axis)]
    assert groupquake("simulate", file, "--page", str(made), *options).code == 0
    page = Page(made.read_text())
    assert page.text.count("dynamic, cooperative 20s 5s 2s") == 1
    assert not any("heat-" in (more.get("class") or "") for _, more in page.elements)


def test_what_is_open_upwards_alone_is_as_hot_as_can_be() -> None:
    """There is no most to measure it by; the page has a colour for it all the same."""
    of = experiment(bounce())
    plan = make_plan(of, 1)
    costs = {"rebalances": Interval(6, None), "unowned_partition_s": Interval(0, None)}
    frame = pd.DataFrame([{"kind": "static, eager", "session_timeout": "6s", **costs}])
    page = Page(render(foresee(of, plan), plan, Sweep(["session_timeout"], frame, [])))
    heats = [more.get("class") for _, more in page.elements if "heat-" in (more.get("class") or "")]
    assert heats == [f"heat-{len(HEATS) - 1}", "heat-0"]


def test_a_course_is_drawn_as_it_happened() -> None:
    """Each restart with a gap in its lane, and its partitions without an owner meanwhile."""
    of = experiment(bounce())
    plan = make_plan(of, 1)
    course = next(courses(of, plan, profile_of(of), RecordedCourse))
    assert len(course.faults) == SIZE
    drawn = course.drawn("shop")
    assert [lane for lane in drawn.lanes if lane.startswith("shop-")] == drawn.lanes
    for fault in course.faults:
        assert fault["healed_at_ms"] - fault["injected_at_ms"] == 2_000
        mine = [one for one in drawn.memberships if one.client == fault["target"]]
        [last, first] = mine[-2:]
        assert last.end_ms == fault["injected_at_ms"]
        assert first.start_ms > fault["healed_at_ms"]
        assert last.generation == first.generation
    begun = course.groups["shop"].tally.count(None, None)
    assert sum(period.rebalancing for period in drawn.periods) == begun
    first_ms = min(fault["injected_at_ms"] for fault in course.faults)
    assert any(not one.rebalancing and one.start_ms < first_ms for one in drawn.periods)


def test_the_longest_time_between_two_owners_counts_from_a_time_on() -> None:
    """Of each partition by itself; one that is left to nobody has no next owner."""
    first, second = (TopicPartition("orders", number) for number in range(2))
    tally = Tally()

    def own(
        before: Sequence[TopicPartition], after: Sequence[TopicPartition], at_ms: float
    ) -> None:
        tally.own("a", before, after, at_ms, "impact")

    own((), (first, second), 5)
    assert tally.idle_ms == 0
    own((first,), (), 10)
    own((), (first,), 50)
    own((first, second), (), 60)
    own((), (first,), 61)
    assert tally.idle_ms == 40
    tally.forget()
    own((), (second,), 90)
    own((first,), (), 91)
    own((), (first,), 106)
    assert tally.idle_ms == 15


def test_a_frozen_member_is_drawn_with_a_gap() -> None:
    """It is in again as it goes on within its session, in the same generation."""
    fault = {"fault": "member.pause", "at": "1s", "down_for": "4s", "target": {"names": ["shop-1"]}}
    alone = {"kind": "static", "count": SIZE, "instance_id": "shop-{n}",
             "client": "librdkafka-process"}  # fmt: skip
    of = experiment(fault, members=[alone])
    course = next(courses(of, make_plan(of, 1), profile_of(of), RecordedCourse))
    mine = [one for one in course.groups["shop"].memberships if one.client == "shop-1"]
    assert [one.generation for one in mine[-2:]] == [mine[-1].generation] * 2
    assert mine[-1].start_ms - mine[-2].end_ms == 4_000
