"""The page says what happened, says it to anybody, and loads nothing."""

from itertools import pairwise

import pytest

from kafka_protocol.printable import printable
from reports.judgement import costs
from reports.judgement.explained import explain
from reports.judgement.missing.gaps import gap
from reports.judgement.results import Results
from reports.judgement.verdict import evaluate
from reports.page import cost_charts, drawn_groups, report
from tests.reports.page_run import IMPACT_MS, join, made_up
from tests.reports.reading import Page, read

HOSTILE = '</script><img src="//evil.example/x"><script>alert(1)</script><b>\x1b\u202e\x9b'
RECORD = "1.8 KiB, 1,024.0 KiB"
LEFT = "leave 1 → 2 7 dynamic-dynamic-0 0.900"

OF_A_PASS = (
    "✓ PASS made-up-bounce Every rebalance that happened was due",
    "dynamic 8 dynamic members ✓ all as due 8 restarts → 16 all of them due a member left: 8 a new",
    "a member left: 8 a new member joined: 8",
    "static 8 static members ✓ all as due 8 restarts → 0 8 20.6 partition-s 0.0 s unknown nothing",
    "Kafka 4.3.0 coordinator java judged by release 4.3 seed 42",
    "2026-09-21 14:13:20.000 UTC",
    "What brokers did None: every response and every rebalance",
    "No gaps: each log reaches from its broker's start to its end, and no line is missing",
    "groupquake run made-up-bounce --seed 42",
    # its tables
    "static 1 0 0 0 1 dynamic 1 16 0 0 17",
    f"static 400 400 0 {RECORD} dynamic 500 500 0 {RECORD}",
    "new member ids 8 8 a broker generates the id",
    "read used irrelevant rejected 1200 1000 200 0",
    "member.restart (group.bounce) static-3 static +28.000 +30.500 ✓ broker 1",
    f"+13.300 {LEFT} +13.300 {LEFT} match",
)
OF_A_FAIL = (
    "✗ FAIL made-up-bounce The brokers did something other than",
    "5 findings",
    "HEARTBEAT of dynamic-dynamic-3: error=UNKNOWN_MEMBER_ID; generation=-1",
    "wrong answer in group dynamic , +19.000 s (14:13:39.000 UTC), brokers/2/group.log:777",
    "no such rebalance +30.800 new_member 8 → 9 8 dynamic-dynamic-3 0.900 missing",
    "no such rebalance not due",
    "wrong members",
    "too late +0.712",
)
OF_OTHERS = (
    "Why this is unknown", "have no serial numbers", "length of metadata", "expected verdict",
    "the hub of Locust",
)  # fmt: skip
"""What a pass does not say."""


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


def test_what_a_pass_and_a_fail_say(passed, failed):
    assert [words for words in OF_A_PASS if words not in passed.text] == []
    assert [words for words in OF_A_FAIL if words not in failed.text] == []
    assert [words for words in OF_OTHERS if words in passed.text] == []


def test_all_groups_are_on_top_with_what_their_faults_cost_the_worst_first(passed, failed):
    rows = [a["class"] for tag, a in failed.elements if tag == "tr" and "class" in a]
    assert rows[:2] == ["fail dynamic", "pass static"]
    # one is missing and one was not due: that 15 were due would say nothing
    assert "8 restarts → 15 a member left: 8 a new member joined: 7" in failed.text
    places = [name for name in passed.ids if name.startswith("group-")]
    assert {f"#{name}" for name in places} < {a.get("href") for tag, a in passed.elements}
    assert "due" not in passed.text[passed.text.index("8 restarts → 0") :][:20]


def test_a_finding_is_said_in_three_sentences_and_a_doubt_with_what_would_settle_it(made):
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "dynamic-dynamic-3")
    run, judged, *rest = made.finish()
    judged["findings"][0]["says"] = {"done": "A did b.", "due": "C is due.", "observed": "D came."}
    text = Page(report.render(run, judged, *rest)).text
    words = "What was done A did b. What should have happened C is due. What happened instead D"
    assert f"{words} came. What to do" in text
    judged["findings"][0]["page"] = "docs/findings.md#absent-member"
    known = "Known defect The pending-sync timer removes an absent static member . No issue"
    assert known in Page(report.render(run, judged, *rest)).text
    judged |= {"unknown_because": ["e", "f"], "settled_by": ["", "a new log"]}
    text = Page(report.render(run, judged, *rest)).text
    assert "e f. What would settle it: a new log" in text


def test_the_page_tells_what_ran_and_where_and_of_an_older_run_that_it_does_not_know(made):
    older = read(made).text
    assert "Java unknown CPUs unknown memory unknown" in older
    machine = {"cpus": 2, "memory_gib": 7.5, "java": "17.0.15"}
    made.environment.update(machine=machine, clients={"librdkafka": "2.16.1", "java": None})
    page = read(made)
    assert "Java 17.0.15 CPUs 2 memory 7.5 GiB" in page.text
    assert "librdkafka 2.16.1, java unknown" in page.text
    assert "the experiment's file name: made-up-bounce" in page.text


def test_who_coordinated_and_which_commits_failed_is_shown(made):
    run, judged, *rest = made.finish()
    at_ms = IMPACT_MS + 1_500
    judged["groups"]["static"] |= {
        "coordinators": [{"broker": "3", "since_ms": at_ms}, {"broker": "1", "since_ms": None}],
        "commit_errors": [{"error": "Unknown member", "count": 7, "first_ms": at_ms,
                           "last_ms": at_ms + 2_000}],
    }  # fmt: skip
    text = Page(report.render(run, judged, *rest)).text
    assert "static 3 +11.500 1 unknown dynamic unknown" in text
    assert "static Unknown member 7 +11.500 +13.500" in text


def test_contents_lead_to_every_section_and_headings_are_in_order(failed):
    linked = {a["href"][1:] for tag, a in failed.elements if tag == "a"}
    sections = {a["id"] for tag, a in failed.elements if tag == "section" and "id" in a}
    assert sections - {"groups"} <= linked
    levels = [int(tag[1]) for tag in failed.tags if tag in ("h1", "h2", "h3", "h4")]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert linked - {"contents"} <= {*failed.ids}


def test_what_logs_of_other_releases_do_not_have_is_said_and_is_no_difference(made):
    """Before 3.0 no line names the leader, before 2.8 none counts members."""
    made.environment.update(kafka_version="2.7.2", coordinator="scala")
    unlogged = ("members", "assigned_members", "static_members", "leader")
    for row in made.comparison:
        row.update({f"observed_{name}": None for name in unlogged})
    shown = read(made, results={"tells_bytes": False})
    assert [a for tag, a in shown.elements if tag == "td" and "wrong " in str(a)] == []
    assert "no line is missing" not in shown.text
    assert "No gaps seen: each log reaches from its broker's start to its end." in shown.text
    assert "have no serial numbers" in shown.text
    assert "in every run of Kafka before 2.8" in shown.text
    assert "length of metadata" in shown.text


def test_cells_that_differ_are_marked(failed):
    wrong = [a["class"] for tag, a in failed.elements if tag == "td" and "wrong " in str(a)]
    assert [words.split()[1] for words in wrong] == ["members"] * 2 + ["started"] * 2


def test_what_was_expected_and_promised_is_on_top_and_a_counterexample_is_named(made):
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "dynamic-dynamic-3")
    files = ["counterexample.txt", "test_counterexample.py"]
    example = {"group": "dynamic", "requests": 7, "left_out": 93, "minimal": True, "files": files}
    shown = read(
        made, judge="kip-345", profile="kip-345-4.3", counterexample=example,
        broken_promises={"dynamic": ["q"]},
        expected_verdict={"verdict": "fail", "because": "p", "group": "dynamic", "met": False},
    )  # fmt: skip
    for words in (
        "judged by kip-345 4.3 expected verdict fail because of p in dynamic, which did not",
        "dynamic departs from KIP-345: q",
        "7 of 100 requests of group dynamic show the first wrong response, and none",
        "beside this report: counterexample.txt , test_counterexample.py .",
    ):
        assert words in shown.text


def test_a_timeline_leads_to_the_findings_and_consequences_are_folded_below_their_root(failed):
    rows = [row for block in failed.figure["blocks"] for row in block["rows"]]
    marked = {bar["opens"] for row in rows for bar in row["bars"] if "opens" in bar}
    links = {a["href"][1:] for tag, a in failed.elements if tag == "a"}
    linked = {link for link in links if link.startswith("finding-")}
    assert {link for link in links if link.startswith("about-")} <= set(failed.ids)
    assert linked < marked == {name for name in failed.ids if name.startswith("finding-")}
    assert sum(a.get("class") == "consequences" for _, a in failed.elements) == 1
    assert "1 consequence of it" in failed.text
    parts = ('id="finding-1"', '<details class="consequences">', 'id="finding-2"', 'id="finding-3"')
    places = [failed.source.index(part) for part in parts]
    assert places == sorted(places)


def test_an_unknown_says_why(made):
    made.gaps.append(gap("2", 431, IMPACT_MS, "3 lines missing"))
    made.doubt_fault("broker 1 still heard it")
    unknown = read(made).text
    assert "? UNKNOWN made-up-bounce No proof either way" in unknown
    assert "evidence is missing: brokers/2/group.log:431: 3 lines missing" in unknown
    assert "not verified: broker 1 still heard it" in unknown
    assert "brokers/2/group.log:431 3 lines missing" in unknown


def test_an_unmet_expectation_is_distinguished_from_wrong_brokers(made):
    del made.comparison[6:]
    text = read(made).text
    assert "FAIL made-up-bounce The brokers kept to the protocol" in text
    assert "1 expectation of the experiment not met" in text
    assert "dynamic, impact : expected 12..18 rebalances, observed 4" in text


def test_a_run_without_evidence_still_gives_a_page_which_says_how_late_the_hub_ran(made):
    run, *_ = made.finish()
    data = Results()
    judged = evaluate(run, data, None)
    explain.add(judged, run, {}, {}, data.places)
    costs.add(judged, {"seconds": 60, "p99_ms": 9.5, "longest_ms": 437.0}, {})
    empty = Page(report.render(run, judged, data, [], {}))
    assert "PASS" not in empty.text
    assert "group static: no request of it in any broker's log" in empty.text
    assert "the hub of Locust" in empty.text
    assert "by up to 437.0 ms" in empty.text


def texts(value):
    """Yield the texts of a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


def test_hostile_names_stay_text(made):
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", HOSTILE)
    made.joins.append(join("dynamic", HOSTILE, HOSTILE, 3, IMPACT_MS + 9_000))
    made.environment.update(repeat_command=HOSTILE, coordinator=HOSTILE)
    names = ("reason", "leader", "member_id")
    made.comparison[3].update({f"observed_{name}": HOSTILE for name in names})
    made.journal[3].update(target=HOSTILE, fault=HOSTILE)
    hostile = read(made)
    assert "img" not in hostile.tags
    assert hostile.tags.count("script") == 1
    assert f"coordinator {printable(HOSTILE)}" in hostile.text
    lanes = [row["name"] for block in hostile.figure["blocks"] for row in block["rows"]]
    assert printable(HOSTILE) in lanes
    shown = hostile.source + "".join(texts(hostile.figure))
    assert [c for c in {*shown} if not c.isprintable()] == ["\n"]


def test_the_page_loads_no_external_resources(failed):
    loading = ("src", "href", "srcset", "poster", "action", "data", "background", "style")
    for tag, attributes in failed.elements:
        for name in loading:
            value = attributes.get(name) or "#"
            assert value.startswith("#") or value == "data:,", (tag, name, value)
    style = failed.source[failed.source.index("<style>") : failed.source.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert failed.tags.count("script") == 1


def test_tables_and_figures_are_named_for_those_who_cannot_see_them(failed):
    assert failed.tags.count("caption") == failed.tags.count("table") == 12
    charts = {a["id"]: a["aria-label"] for _, a in failed.elements if a.get("role") == "figure"}
    assert set(charts) == set(failed.figures) == {"timeline", "stops", "owners-1", "owners-2"}
    assert all(charts.values())


def test_of_a_large_run_there_is_what_a_page_can_carry(tmp_path, monkeypatch):
    """Lanes for members with faults first, rows that differ first, few partitions and bars."""
    monkeypatch.setattr(drawn_groups, "LANES_DRAWN", 40)
    monkeypatch.setattr(cost_charts, "LANES_DRAWN", 40)
    made = made_up(tmp_path, size=50)
    made.journal = [
        one for one in made.journal if "fault_id" not in one or one["fault_id"].endswith("-49")
    ]
    made.comparison = [dict(row) for row in made.comparison for _ in range(5)]
    made.comparison[-1].update(observed_members=1, outcome="wrong_members")
    large = read(made)
    static = large.figure["blocks"][0]
    lanes = [row["name"] for row in static["rows"]]
    assert lanes[:3] == ["observed", "expected", "static-0"]
    assert (lanes[-1], len(lanes)) == ("static-49", 2 + 40)
    assert static["title"] == "50 static members, 40 of them drawn"
    rows = [a["class"] for tag, a in large.elements if tag == "tr" and a.get("class")]
    rows = [row for row in rows if row in ("match", "differs")]
    assert (len(rows), rows[-1]) == (400, "differs")
    assert f"{len(made.comparison) - 400} more rows in tables/comparison" in large.text
    _, *named = large.figures["owners-2"]["blocks"][0]["rows"]
    assert 10 < len(named) <= 48
    assert f"dynamic {len(named)} of 50 partitions drawn" in large.text
    rows = [*named, *large.figures["owners-1"]["blocks"][0]["rows"][1:]]
    assert sum(len(row["bars"]) for row in rows) <= 4_000
    assert "40 of them drawn" in large.figures["stops"]["blocks"][1]["title"]


def test_times_count_from_the_start_of_formation(passed):
    assert passed.figure["end"] == 59.0
    assert [phase["at"] for phase in passed.figure["phases"]] == [0.0, 10.0, 53.0, 58.0]


def test_what_lies_outside_the_forecast_is_marked_and_named(made):
    rows = [
        {"group": "static", "phase": "impact", "reason": "leave", "expected": "1..2",
         "observed": count, "outside": count > 2}
        for count in (2, 3)
    ]  # fmt: skip
    page = read(made, forecast=rows)
    assert "1 number outside the forecast static, impact, leave: 3 rebalances" in page.text
    assert "static impact leave 1..2 2 impact leave 1..2 3 outside" in page.text
    assert sum("wrong" in (more.get("class") or "") for tag, more in page.elements) == 2
    assert "Nothing happened outside of it" in read(made, forecast=rows[:1]).text


@pytest.mark.parametrize(("members", "most_mb"), [(8, 1.5), (500, 5)])
def test_a_page_is_small_enough_to_be_sent(tmp_path, members, most_mb):
    source = read(made_up(tmp_path, size=members)).source
    assert len(source.encode()) < most_mb * 1_000_000
