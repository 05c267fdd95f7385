"""JUnit XML: green on a pass alone, failures for what is proven, errors for what is unknown."""

from xml.etree import ElementTree as ET

import pytest

from reports.judgement.missing.gaps import gap
from reports.page import junit
from tests.reports.page_run import IMPACT_MS, made_up


def read(made):
    _, verdict, *_ = made.finish()
    suite = ET.fromstring(junit.render(verdict))
    outcomes = {
        case.get("name"): [(child.tag, child.get("message")) for child in case] for case in suite
    }
    return verdict["verdict"], suite, {name: out for name, out in outcomes.items() if out}


@pytest.fixture
def made(tmp_path):
    return made_up(tmp_path)


def counts(suite):
    return [int(suite.get(name)) for name in ("tests", "failures", "errors")]


def test_a_pass_is_green(made):
    verdict, suite, marked = read(made)
    assert (verdict, suite.get("name"), marked) == ("pass", "made-up-bounce", {})
    assert counts(suite) == [6, 0, 0]
    assert [case.get("name") for case in suite] == [
        "comparison static",
        "comparison dynamic",
        "expectations static",
        "expectations dynamic",
        "faults verified",
        "evidence complete",
    ]


def test_a_finding_fails_the_comparison_of_its_group(made):
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "dynamic-dynamic-3")
    made.add_violation("2:778", IMPACT_MS + 30_000, "dynamic", "dynamic-dynamic-4")
    verdict, suite, marked = read(made)
    assert (verdict, list(marked), counts(suite)) == ("fail", ["comparison dynamic"], [6, 1, 0])
    ((tag, message),) = marked["comparison dynamic"]
    assert tag == "failure"
    assert message.startswith("wrong_answer at 1790000019000 (brokers/2/group.log:777): expected ")
    assert message.endswith(" (and 1 more)")
    text = suite.findtext("testcase/failure")
    assert len(text.splitlines()) == 2


def test_a_finding_that_missing_evidence_may_explain_is_an_error(made):
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "dynamic-dynamic-3")
    made.gaps.append(gap("2", 431, IMPACT_MS, "3 lines missing"))
    verdict, suite, marked = read(made)
    assert verdict == "unknown"
    assert [out[0][0] for out in marked.values()] == ["error", "error"]
    assert list(marked) == ["comparison dynamic", "evidence complete"]
    assert counts(suite) == [6, 0, 2]


def test_an_unmet_expectation_is_a_failure_of_its_group(made):
    del made.comparison[6:]
    verdict, _, marked = read(made)
    assert verdict == "fail"
    assert marked == {
        "expectations dynamic": [("failure", "impact: expected 12..18 rebalances, observed 4")]
    }


def test_an_unmet_expectation_in_doubtful_evidence_is_an_error(made):
    del made.comparison[6:]
    made.gaps.append(gap("2", 431, IMPACT_MS, "3 lines missing"))
    verdict, suite, marked = read(made)
    assert (verdict, marked["expectations dynamic"][0][0]) == ("unknown", "error")
    assert counts(suite)[1] == 0


def test_a_fault_without_witness_is_an_error(made):
    for entry in made.journal:
        if entry["event"] == "verified" and entry["fault_id"] == "static.static-3":
            entry.update(verified=False, witness="")
    verdict, _, marked = read(made)
    assert verdict == "unknown"
    assert marked["faults verified"] == [("error", "member.restart on static-3: never carried out")]


def test_text_that_xml_cannot_hold_is_escaped(made):
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "<evil>\x00\ud800&")
    _, suite, _ = read(made)
    assert "HEARTBEAT of <evil>\\x00\\ud800&" in suite.findtext("testcase/failure")


def test_same_verdict_same_bytes(made):
    _, verdict, *_ = made.finish()
    assert junit.render(verdict) == junit.render(verdict)
