"""The page says what happened, says it to anybody, and loads nothing."""

import re
from dataclasses import replace

import pytest
from plotly.offline import get_plotlyjs

from kafka_protocol.printable import printable
from reports.judgement import costs
from reports.judgement.missing.gaps import gap
from reports.judgement.results import Results
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.verdict import evaluate
from reports.page import report
from tests.reports.page_run import IMPACT_MS, ZERO_MS, join, made_up
from tests.reports.reading import Page

HOSTILE = '</script><img src="//evil.example/x"><script>alert(1)</script><b>\x1b\u202e\x9b'


def read(made):
    return Page(report.render(*made.finish()))


@pytest.fixture(scope="module")
def passed(tmp_path_factory):
    return read(made_up(tmp_path_factory.mktemp("pass")))


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    made = made_up(tmp_path_factory.mktemp("fail"))
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "dynamic-dynamic-3")
    made.add_violation("2:778", IMPACT_MS + 10_500, "dynamic", "dynamic-dynamic-4")
    made.lose(9, "observed")
    made.lose(12, "expected")
    made.comparison[14].update(observed_members=5, outcome="wrong_members")
    made.comparison[15].update(outcome="late", off_by_ms=712.0)
    return read(made)


def test_a_pass_says_what_restarts_cost_each_group(passed):
    assert "✓ PASS made-up-bounce Every rebalance that happened was due" in passed.text
    assert "static 8 static members 8 restarts → 0 rebalances 0 due by the protocol" in passed.text
    assert "8 restarts → 16 rebalances 2.0 per restart 16 due by the protocol" in passed.text
    assert "12 to 18 allowed by the experiment · rebalancing 14.4 of 43.0 s" in passed.text
    assert "Kafka 4.3.0 coordinator java judged by release 4.3 seed 42" in passed.text
    assert "2026-09-21 14:13:20.000 UTC" in passed.text


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("rebalances: {min: 12}", "12 or more allowed by the experiment ·"),
        ("rebalances: 16", "16 allowed by the experiment ·"),
        ("reason: leave, rebalances: 8", None),
    ],
)
def test_a_card_says_what_is_allowed(bound, words, tmp_path):
    made = made_up(tmp_path)
    run, *others = made.finish()
    file = run.path / "experiment.yaml"
    file.write_text(file.read_text().replace("rebalances: {min: 12, max: 18}", bound))
    shown = Page(report.render(RunFolder(run.path), *others)).text
    due = "16 due by the protocol · "
    assert f"{due}{words or 'rebalancing'} " in shown


def test_a_pass_says_that_there_are_no_findings_and_no_gaps(passed):
    assert "Findings None: every response and every rebalance" in passed.text
    assert "No gaps: each log reaches from its broker's start to its end" in passed.text
    assert "Why this is unknown" not in passed.text
    assert "groupquake run made-up-bounce --seed 42" in passed.text


def test_logs_without_serial_numbers_are_not_called_complete(passed, tmp_path):
    made = made_up(tmp_path)
    made.environment.update(kafka_version="3.9.1", coordinator="scala")
    text = read(made).text
    assert "no line is missing" in passed.text
    assert "no line is missing" not in text
    assert "No gaps seen: each log reaches from its broker's start to its end." in text
    assert ("have no serial numbers" in text, "have no serial" in passed.text) == (True, False)


def test_tables_hold_the_counts(passed):
    assert "static 1 0 0 0 1 dynamic 1 16 0 0 17" in passed.text
    record = "1.8 KiB, 1,024.0 KiB"
    assert f"static 400 400 0 {record} dynamic 500 500 0 {record}" in passed.text
    assert "new member ids 8 8 a broker generates the id" in passed.text
    assert "read used irrelevant rejected 1200 1000 200 0" in passed.text
    assert "member.restart (group.bounce) static-3 static +28.000 +30.500 ✓ broker 1" in passed.text


def test_comparison_stands_observed_beside_expected(passed, failed):
    row = "leave 1 → 2 7 dynamic-dynamic-0 0.900"
    assert f"+13.300 {row} +13.300 {row} match" in passed.text
    assert "no such rebalance +30.800 new_member 8 → 9 8 dynamic-dynamic-3 0.900 missing" in (
        failed.text
    )
    assert "no such rebalance not due" in failed.text
    assert "wrong members" in failed.text
    assert "too late +0.712" in failed.text
    wrong = [a["class"] for tag, a in failed.elements if tag == "td" and "wrong " in str(a)]
    assert [words.split()[1] for words in wrong] == ["members"] * 2 + ["started"] * 2


def test_a_value_that_a_release_does_not_log_is_no_difference(tmp_path):
    """Before 3.0 no line names the leader, before 2.8 none counts members."""
    made = made_up(tmp_path)
    unlogged = ("members", "assigned_members", "static_members", "leader")
    for row in made.comparison:
        row.update({f"observed_{name}": None for name in unlogged})
    shown = Page(report.render(*made.finish()))
    assert [a for tag, a in shown.elements if tag == "td" and "wrong " in str(a)] == []


def test_logs_that_give_lengths_alone_are_said_to(passed, tmp_path):
    made = made_up(tmp_path)
    made.environment.update(kafka_version="2.7.2", coordinator="scala")
    run, verdict, data, *rest = made.finish()
    text = Page(report.render(run, verdict, replace(data, tells_bytes=False), *rest)).text
    assert "in every run of Kafka before 2.8" in text
    assert ("length of metadata" in text, "length of metadata" in passed.text) == (True, False)


def test_expected_verdict_and_broken_promises_are_on_top(failed, tmp_path):
    made = made_up(tmp_path)
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "dynamic-dynamic-3")
    run, verdict, *rest = made.finish()
    assert "expected verdict" not in failed.text
    unmet = {"verdict": "fail", "because": "p", "group": "dynamic", "met": False}
    judged = {"judge": "kip-345", "profile": "kip-345-4.3", "broken_promises": {"dynamic": ["q"]}}
    shown = Page(report.render(run, verdict | {"expected_verdict": unmet} | judged, *rest)).text
    expected = "judged by kip-345 4.3 expected verdict fail because of p in dynamic, which did not"
    assert expected in shown
    assert "promises of KIP-345 broken in dynamic: q" in shown


def test_a_fail_leads_to_its_findings(failed):
    assert "✗ FAIL made-up-bounce The brokers did something other than" in failed.text
    assert "5 findings" in failed.text
    assert "HEARTBEAT of dynamic-dynamic-3: error_code=25; generation=-1" in failed.text
    assert (
        "wrong answer in group dynamic , +19.000 s (14:13:39.000 UTC), brokers/2/group.log:777"
        in (failed.text)
    )
    marked = {
        target
        for trace in failed.figure["data"]
        for target in trace.get("customdata", [])
    }  # fmt: skip
    linked = {a["href"][1:] for tag, a in failed.elements if tag == "a"} - {"findings"}
    assert linked < marked
    assert marked == {name for name in failed.ids if name.startswith("finding-")}


def test_a_counterexample_is_named(tmp_path):
    run, verdict, *rest = made_up(tmp_path).finish()
    files = ["counterexample.txt", "test_counterexample.py"]
    counterexample = {
        "group": "dynamic",
        "requests": 7,
        "left_out": 93,
        "minimal": True,
        "files": files,
    }
    shown = Page(report.render(run, verdict | {"counterexample": counterexample}, *rest))
    assert (
        "7 of 100 requests of group dynamic show the first wrong response, and none" in shown.text
    )
    assert "Beside this report: counterexample.txt , test_counterexample.py ." in shown.text


def test_consequences_are_folded_below_their_root(failed):
    assert sum(a.get("class") == "consequences" for _, a in failed.elements) == 1
    assert "1 consequence of this finding" in failed.text.replace("consequence:", "consequence :")
    root, consequence = failed.ids.index("finding-1"), failed.ids.index("finding-2")
    assert consequence == root + 1
    assert failed.source.index('<details class="consequences">') < failed.source.index(
        'id="finding-2"'
    )
    assert failed.source.index('id="finding-2"') < failed.source.index("</details>")


def test_an_unknown_says_why(tmp_path):
    made = made_up(tmp_path)
    made.gaps.append(gap("2", 431, IMPACT_MS, "3 lines missing"))
    for entry in made.journal:
        if entry["event"] == "verified" and entry["fault_id"] == "static.static-3":
            entry.update(verified=False, witness="broker 1 still heard it")
    unknown = read(made)
    assert "? UNKNOWN made-up-bounce No proof either way" in unknown.text
    assert "evidence is missing: brokers/2/group.log:431: 3 lines missing" in unknown.text
    assert "not verified: broker 1 still heard it" in unknown.text
    assert "brokers/2/group.log:431 3 lines missing" in unknown.text


def test_an_unmet_expectation_is_distinguished_from_wrong_brokers(tmp_path):
    made = made_up(tmp_path)
    del made.comparison[6:]
    text = read(made).text
    assert "FAIL made-up-bounce The brokers kept to the protocol" in text
    assert "1 expectation of the experiment not met" in text
    assert "dynamic, impact: expected 12..18 rebalances, observed 4" in text


def test_a_run_without_evidence_still_gives_a_page(tmp_path):
    run, *_ = made_up(tmp_path).finish()
    data = Results()
    judged = evaluate(run, data, None)
    costs.add(judged, None, {})
    empty = Page(report.render(run, judged, data, [], {}))
    assert "PASS" not in empty.text
    assert "group static: no request of it in any broker's log" in empty.text


def test_the_page_says_how_late_the_hub_ran(tmp_path):
    run, judged, data, *_ = made_up(tmp_path).finish()
    page = lambda: Page(report.render(run, judged, data, [], {})).text
    assert "the hub of Locust" not in page()
    costs.add(judged, {"seconds": 60, "p99_ms": 9.5, "longest_ms": 437.0}, {})
    assert "by up to 437.0 ms" in page()


def test_hostile_names_stay_text(tmp_path):
    made = made_up(tmp_path)
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", HOSTILE)
    made.joins.append(join("dynamic", HOSTILE, HOSTILE, 3, IMPACT_MS + 9_000))
    made.environment.update(repeat_command=HOSTILE, coordinator=HOSTILE)
    made.comparison[3].update(
        observed_reason=HOSTILE, observed_leader=HOSTILE, observed_member_id=HOSTILE
    )
    made.journal[3].update(target=HOSTILE, fault=HOSTILE)
    hostile = read(made)
    assert "img" not in hostile.tags
    assert hostile.tags.count("script") == 2
    assert f"coordinator {printable(HOSTILE)}" in hostile.text
    # plotly knows tags of its own
    drawn = [trace["hovertext"] for trace in hostile.figure["data"]]
    assert "&lt;b&gt;" in str(drawn)
    assert "<img" not in str(hostile.figure)
    assert not re.search(r"<(?!/?(b|br)>)", str(hostile.figure))
    shown = re.findall(r"[^\n]", hostile.source.replace(get_plotlyjs(), "") + str(hostile.figure))
    assert [c for c in set(shown) if not c.isprintable()] == []


def test_the_page_loads_no_external_resources(failed):
    loading = ("src", "href", "srcset", "poster", "action", "data", "background", "style")
    for tag, attributes in failed.elements:
        for name in loading:
            value = attributes.get(name) or "#"
            assert value.startswith("#") or value == "data:,", (tag, name, value)
    style = failed.source[failed.source.index("<style>") : failed.source.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert failed.tags.count("script") == 2
    assert failed.source.count("plotly.js v") == 1


def test_same_input_same_bytes(tmp_path):
    arguments = made_up(tmp_path).finish()
    assert report.render(*arguments) == report.render(*arguments)


def test_tables_and_figure_are_named_for_those_who_cannot_see_them(failed):
    assert failed.tags.count("caption") == failed.tags.count("table") == 10
    charts = {
        attributes["id"]: attributes
        for _, attributes in failed.elements
        if attributes.get("role") == "img"
    }
    assert set(charts) == set(failed.figures) == {"timeline", "stops", "owners-1", "owners-2"}
    assert all(chart["aria-label"] for chart in charts.values())


def test_large_groups_get_lanes_for_those_with_faults_first(tmp_path):
    made = made_up(tmp_path, size=50)
    made.journal = [
        entry
        for entry in made.journal
        if "fault_id" not in entry or entry["fault_id"].endswith("-49")
    ]
    large = read(made)
    lanes = large.figure["layout"]["yaxis"]["ticktext"]
    assert lanes[:3] == ["<b>observed</b>", "<b>expected</b>", "static-0"]
    assert lanes[-1] == "static-49"
    assert len(lanes) == 2 + 40
    assert "50 static members, 40 of them drawn" in str(large.figure["layout"]["annotations"])


def test_long_comparisons_keep_what_differs(tmp_path):
    made = made_up(tmp_path, size=50)
    made.comparison = [dict(row) for row in made.comparison for _ in range(5)]
    made.comparison[-1].update(observed_members=1, outcome="wrong_members")
    long = read(made)
    rows = [a for tag, a in long.elements if tag == "tr" and a.get("class") in ("match", "differs")]
    assert len(rows) == 400
    assert rows[-1]["class"] == "differs"
    assert f"{len(made.comparison) - 400} more rows in tables/comparison" in long.text


def test_times_count_from_the_start_of_formation(passed):
    assert passed.figure["layout"]["xaxis"]["range"] == [0, 59.0]
    begun = [shape["x0"] for shape in passed.figure["layout"]["shapes"] if shape["type"] == "line"]
    assert begun == [0.0, 10.0, 53.0, 58.0]
    assert ZERO_MS == 1_790_000_000_000.0
