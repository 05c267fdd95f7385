"""The verdict on clients counts for programs of the user's own, and is shown for others."""

from xml.etree import ElementTree as ET

import pytest

from groupquake.shrink.root import of_verdict
from groupquake.summary import summary
from reports.judgement.clients.client_verdict import LISTED
from reports.judgement.missing.gaps import gap
from reports.page import junit
from tests.reports.judgement.clients.client_rules.conversation import Conversation
from tests.reports.page_run import IMPACT_MS, MadeUpRun, made_up

OWN = "{command: [./consumer]}"
MEMBER, OTHER = "dynamic-dynamic-3", "static-3"
KEPT, SHOWN = "  - {clients: kept}", "  - {clients: shown}"
SAYS = f"{MEMBER} sent LeaveGroup"
BROKEN = f"brokers: kept the protocol · your client: broken: {SAYS}"


def breaks(made: MadeUpRun, *clients: str) -> None:
    for client in clients:
        made.add_client_finding(client, group="static" if client == OTHER else "dynamic")


@pytest.mark.parametrize(
    ("client", "expects", "broke", "verdict", "counts", "of_clients"),
    [
        (OWN, "", (), "pass", True, "kept"),
        (OWN, "", (MEMBER,), "fail", True, "broken"),
        (OWN, "", (f"{MEMBER}.duplicate",), "fail", True, "broken"),
        (OWN, "", ("a-client-id-of-its-own",), "unknown", True, "unknown"),
        (OWN, "", (*["a-client-id-of-its-own"] * LISTED, MEMBER), "fail", True, "broken"),
        (OWN, "", (OTHER,), "pass", True, "kept"),
        (OWN, SHOWN, (MEMBER,), "pass", False, "broken"),
        ("aiokafka", "", (), "pass", False, "kept"),
        ("aiokafka", "", (MEMBER,), "pass", False, "broken"),
        ("aiokafka", KEPT, (MEMBER,), "fail", True, "broken"),
    ],
)
def test_whose_findings_count(made_run, client, expects, broke, verdict, counts, of_clients):
    made_run.client, made_run.owners = client, expects
    breaks(made_run, *broke)
    _, judged, *_ = made_run.finish()
    found = judged["clients"]
    assert (judged["verdict"], found["counts"], found["verdict"]) == (verdict, counts, of_clients)
    assert found["alone"] == (verdict == "fail")


def test_missing_evidence_may_excuse_a_client(made_run):
    made_run.client = OWN
    made_run.gaps.append(gap("2", 431, IMPACT_MS, "3 lines missing"))
    breaks(made_run, MEMBER)
    _, judged, *_ = made_run.finish()
    assert (judged["verdict"], judged["clients"]["verdict"]) == ("unknown", "unknown")
    assert any(why.startswith(f"your client: {SAYS} (not") for why in judged["unknown_because"])


def test_where_it_is_said(made_run):
    made_run.client = OWN
    breaks(made_run, MEMBER, MEMBER)
    run, judged, *_ = made_run.finish()
    assert judged["headline"][0] == f"{BROKEN} (and 1 more)"
    lines = summary(judged, "x")
    assert (
        f"  your client: {SAYS} (and 1 more) (stays-when-static, brokers/2/group.log:59)" in lines
    )
    assert of_verdict(judged, run.experiment) == [], "a fail of clients is no broker's to shrink"


@pytest.mark.parametrize(
    ("expects", "lost", "tag"),
    [("", False, "failure"), ("", True, "error"), (SHOWN, False, "system-out")],
)
def test_the_case_of_a_build_server(made_run, expects, lost, tag):
    made_run.client, made_run.owners = OWN, expects
    made_run.gaps += [gap("2", 431, IMPACT_MS, "3 lines missing")] * lost
    breaks(made_run, MEMBER)
    suite = ET.fromstring(junit.render(made_run.finish()[1]))
    (found,) = next(case for case in suite if case.get("name") == "clients dynamic")
    assert (found.tag, SAYS in found.text) == (tag, True)
    assert len(next(case for case in suite if case.get("name") == "clients static")) == 0


def test_a_finding_has_the_requests_that_show_it():
    [found] = Conversation("i").member_of_it().leave().found([])
    assert found["rule"] == "stays-when-static"
    [shown] = found["log"]
    assert (shown["api"], shown["generation"], shown["answer"]) == ("LEAVE_GROUP", 1, "no error")


@pytest.fixture
def made_run(tmp_path):
    return made_up(tmp_path)
