"""The page over nights, from records alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from groupquake.nightly import junit, page
from groupquake.nightly.history import TREND, lines, nights, trend

Json = dict[str, Any]


def run(verdict: str = "pass", **more: Any) -> Json:
    measured = {"clerks": {"rebalances": 2}}
    return {
        "experiment": "bounce",
        "platform": "4.3.0 java",
        "seed": 11,
        "command": "groupquake run bounce",
        "state": "ended",
        "verdict": verdict,
        "why": None if verdict == "pass" else "it had to",
        "took_s": 40.0,
        "folder": "runs/one",
        "output": "output/1.log",
        "groups": {} if verdict == "not run" else measured,
        **more,
    }


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "nights"


def keep(directory: Path, day: int, *runs: Json, **more: Any) -> Json:
    """Write the record of one night of November."""
    record = {
        "suite": "mine",
        "description": "",
        "state": "ended",
        "verdict": runs[0]["verdict"],
        "why": None,
        "aborted": None,
        "started_at": f"2026-11-{day:02}T02:00:00+00:00",
        "took_s": 41.0,
        "groupquake_version": "0.1.0",
        "git": None,
        "runs": list(runs),
        **more,
    }
    folder = directory / f"202611{day:02}T020000-mine"
    folder.mkdir(parents=True)
    (folder / "night.json").write_text(json.dumps(record))
    return record


def point(day: int, measure: str, value: float, **more: Any) -> Json:
    return {
        "night": f"202611{day:02}T020000-mine",
        "experiment": "bounce",
        "kafka_version": "4.3.0",
        "coordinator": "java",
        "cluster": "process",
        "group": "clerks",
        "measure": measure,
        "value": value,
        "runs": 1,
        **more,
    }


def draw(directory: Path, *points: Json) -> None:
    (directory / TREND).write_text(json.dumps(points))


def test_a_night_without_a_verdict_leaves_a_gap_in_the_trend(directory: Path) -> None:
    for day, verdict in ((1, "pass"), (2, "not run"), (3, "fail")):
        keep(directory, day, run(verdict))
    measured = (("rebalances", 2.0), ("rebalancing_ms", 1500.0))
    draw(directory, *(point(day, *one) for day in (1, 3) for one in measured))
    oldest_first = list(reversed(nights(directory)[0]))
    (line,) = lines(oldest_first, trend(directory))
    assert line.verdicts() == ["pass", "not run", "fail"]
    assert line.measured("clerks", "rebalances") == [2, None, 2]
    assert line.took_s() == [40.0, None, 40.0]
    text = page.render(directory)
    assert text.count("<polyline") == 2 * 3  # two pieces in each of the three drawings
    assert "2026-11-02 02:00 UTC: not run" in text


def test_seeds_of_one_night_count_by_their_worst(directory: Path) -> None:
    keep(directory, 1, run(), run("unknown", seed=12))
    (line,) = lines(nights(directory)[0], [])
    assert line.verdicts() == ["unknown"]


def test_measures_of_other_experiments_platforms_and_nights_are_not_drawn(directory: Path) -> None:
    keep(directory, 1, run())
    others = ({"experiment": "other"}, {"cluster": "docker"}, {"night": "20261031T020000-mine"})
    draw(directory, *(point(1, "rebalances", 9.0, **other) for other in others))
    (line,) = lines(nights(directory)[0], trend(directory))
    assert line.groups == ()
    assert line.measured("clerks", "rebalances") == [None]


@pytest.mark.parametrize("content", ["", "{}", "[{}]", '[{"night": 3}]'])
def test_a_trend_that_cannot_be_read_is_not_drawn(content: str, directory: Path) -> None:
    keep(directory, 1, run())
    (directory / TREND).write_text(content)
    assert "<polyline" in page.render(directory)  # how long the run took
    assert trend(directory) == []


def test_a_link_leads_to_what_is_still_there(directory: Path) -> None:
    keep(directory, 1, run())
    night = directory / "20261101T020000-mine"
    assert 'href="2026' not in page.render(directory)
    (night / "output").mkdir()
    (night / "output" / "1.log").touch()
    assert f'href="{night.name}/output/1.log"' in page.render(directory)
    (night / "runs" / "one").mkdir(parents=True)
    (night / "runs" / "one" / "report.html").touch()
    assert f'href="{night.name}/runs/one/report.html"' in page.render(directory)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"runs": 3}', '{"runs": [{}]}'])
def test_a_record_that_cannot_be_read_is_named_and_stops_nothing(
    content: str, directory: Path
) -> None:
    keep(directory, 1, run())
    (directory / "broken").mkdir()
    (directory / "broken" / "night.json").write_text(content)
    text = page.render(directory)
    assert "No <code>night.json</code> that can be read: broken." in text
    assert "2026-11-01 02:00 UTC" in text


WHY_LEFT_OUT = {name: value for name, value in run().items() if name != "why"}


@pytest.mark.parametrize(
    "broken",
    [
        run(groups={"clerks": {}}),
        run(groups={"clerks": {"rebalances": "2"}}),
        run(groups={"clerks": 2}),
        run(groups=None),
        run(groups=["clerks"]),
        run(took_s=None),  # although something was measured
        run(took_s="40"),
        run(took_s=float("inf")),
        run(verdict="passed"),
        run(state="over"),
        run(folder=7),
        WHY_LEFT_OUT,
    ],
)
def test_a_night_with_a_run_of_another_form_is_named(broken: Json, directory: Path) -> None:
    keep(directory, 1, run())
    keep(directory, 2, run(), broken)
    text = page.render(directory)
    assert "that can be read: 20261102T020000-mine." in text
    assert "2026-11-01 02:00 UTC" in text


@pytest.mark.parametrize(
    "broken",
    [
        {"took_s": None},
        {"took_s": "41"},
        {"started_at": "last night"},
        {"started_at": None},
        {"description": None},
        {"verdict": None},
        {"runs": []},
        {"runs": None},
        {"runs": ["bounce"]},
    ],
)
def test_a_night_of_another_form_is_named(broken: Json, directory: Path) -> None:
    keep(directory, 1, run(), **broken)
    text = page.render(directory)
    assert "that can be read: 20261101T020000-mine." in text
    assert "No nights yet" in text


def test_fields_of_later_versions_are_ignored(directory: Path) -> None:
    keep(directory, 1, run(exit_code=0, weather="fine"), ended_at=None)
    assert "that can be read" not in page.render(directory)


def test_every_drawing_has_a_name(directory: Path) -> None:
    keep(directory, 1, run())
    names = re.findall('role="img" aria-label="([a-z ]+), night by night', page.render(directory))
    assert names == ["rebalances", "time they took", "time the run took"]


def test_the_newest_night_comes_first_and_only_so_many_are_drawn(directory: Path) -> None:
    for day in range(1, 30):
        keep(directory, day, run("fail" if day == 29 else "pass"))
    for day in range(1, 6):
        keep(directory / "..", day, run())
        folder = directory.parent / f"202611{day:02}T020000-mine"
        folder.rename(directory / f"202510{day:02}T020000-mine")
    text = page.render(directory)
    assert text.index('class="badge fail"') < text.index('class="chip pass"')
    assert f"The last {page.NIGHTS_DRAWN} of 34 nights" in text
    assert text.count("<details") == 33


def test_texts_of_a_run_are_escaped(directory: Path) -> None:
    record = keep(directory, 1, run("fail", why="<script>alert(1)</script>\x00\u202e"))
    shown = r"&lt;script&gt;alert(1)&lt;/script&gt;\x00\u202e"
    assert shown in page.render(directory)
    assert shown in junit.render(record)


def test_a_page_without_nights(directory: Path) -> None:
    assert "No nights yet" in page.render(directory)


def test_only_a_pass_is_green_in_junit(directory: Path) -> None:
    record = keep(directory, 1, run(), run("fail"), run("unknown"), run("not run"))
    text = junit.render(record)
    assert 'tests="4" failures="1" errors="2"' in text
    assert "skipped" not in text
