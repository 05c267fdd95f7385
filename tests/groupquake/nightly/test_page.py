"""The page over nights, from records alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from groupquake.nightly import page
from groupquake.nightly.command import _summary
from groupquake.nightly.history import TREND, nights, points, trends

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


def test_the_page_says_of_an_expected_fail_what_the_terminal_says(directory: Path) -> None:
    record = keep(directory, 1, run(why="fail, as expected"), run(seed=12))
    (shown, other) = re.findall(r'<div class="run">(.*?)</div>', page.render(directory), re.DOTALL)
    assert "<b>fail, as expected</b>" in shown
    assert "<b>" not in other
    line, *_ = _summary(record, directory)
    assert line == "pass     bounce on 4.3.0 java, seed 11: fail, as expected"


def test_a_night_without_a_verdict_leaves_a_gap_in_the_trend(directory: Path) -> None:
    for day, verdict in ((1, "pass"), (2, "not run"), (3, "fail")):
        keep(directory, day, run(verdict), run("unknown", seed=12) if day == 1 else run(verdict))
    measured = (("rebalances", 2.0), ("rebalancing_ms", 1500.0))
    draw(directory, *(point(day, *one) for day in (1, 3) for one in measured))
    oldest_first = list(reversed(nights(directory)[0]))
    (line,) = trends(oldest_first, points(directory))
    assert line.verdicts == ["unknown", "not run", "fail"]  # seeds count by their worst
    assert line.measures["rebalances"] == {"clerks": [2, None, 2]}
    assert line.took_s == [40.0, None, 40.0]
    text = page.render(directory)
    assert text.count("<polyline") == 2 * 3  # two pieces in each of the three drawings
    assert "2026-11-02 02:00 UTC: not run" in text


def test_measures_of_other_experiments_platforms_and_nights_are_not_drawn(directory: Path) -> None:
    keep(directory, 1, run())
    others = ({"experiment": "other"}, {"cluster": "docker"}, {"night": "20261031T020000-mine"})
    draw(directory, *(point(1, "rebalances", 9.0, **other) for other in others))
    (line,) = trends(nights(directory)[0], points(directory))
    assert line.measures == {}


def test_a_trend_that_cannot_be_read_is_not_drawn(directory: Path) -> None:
    keep(directory, 1, run())
    for content in ("", "{}", "[{}]", '[{"night": 3}]'):
        (directory / TREND).write_text(content)
        assert "<polyline" in page.render(directory)  # how long the run took
        assert points(directory) == []


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


WHY_LEFT_OUT = {name: value for name, value in run().items() if name != "why"}
BROKEN_RUNS = [
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
]
BROKEN_NIGHTS: list[Json] = [
    {"took_s": None},
    {"took_s": "41"},
    {"started_at": "last night"},
    {"started_at": None},
    {"description": None},
    {"verdict": None},
    {"runs": []},
    {"runs": None},
    {"runs": ["bounce"]},
    *({"runs": [run(), broken]} for broken in BROKEN_RUNS),
]


def test_a_record_of_another_form_is_named_and_stops_nothing(directory: Path) -> None:
    """Of all that are broken in one way each, none is shown, and the whole one is."""
    whole = keep(directory, 1, run())
    texts = ["", "[]", "{}", '{"runs": 3}', '{"runs": [{}]}']
    texts += [json.dumps(whole | broken) for broken in BROKEN_NIGHTS]
    for number, text in enumerate(texts):
        folder = directory / f"broken-{number:02}"
        folder.mkdir()
        (folder / "night.json").write_text(text)
    found, unreadable = nights(directory)
    assert [night["night"] for night in found] == ["20261101T020000-mine"]
    assert unreadable == [f"broken-{number:02}" for number in reversed(range(len(texts)))]
    shown = page.render(directory)
    assert "No <code>night.json</code> that can be read: broken-25, broken-24," in shown
    assert "2026-11-01 02:00 UTC" in shown


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
    assert shown in page.junit_xml(record)


def test_a_page_without_nights(directory: Path) -> None:
    assert "No nights yet" in page.render(directory)


def test_only_a_pass_is_green_in_junit(directory: Path) -> None:
    record = keep(directory, 1, run(), run("fail"), run("unknown"), run("not run"))
    text = page.junit_xml(record)
    counts = 'tests="4" failures="1" errors="2"'
    assert text.count(counts) == 2  # of the night, and of its only platform
    assert text.count('time="40.0"') == 4
    assert "skipped" not in text
