"""Who caused rebalances: of recorded groups, and with what is known of their runs left out."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from reference_coordinator.classic.effects import Reason
from reference_coordinator.replay import ObservedRequest
from reports.judgement.causes import Causes
from reports.judgement.clients.client_rules.findings import CAUSES_NO_REBALANCE, CLIENT_RULES
from reports.judgement.group import check_rows
from reports.judgement.group_evidence import GroupEvidence
from reports.judgement.run.disturbance import Act, Disturbance, Source
from tests.recorded.logs import RECORDINGS, TAPPED
from tests.reports.judgement.contexts import context

BOUNCE = TAPPED["rolling-bounce-4.3.0"]
SCALA = RECORDINGS["kafka-3.9.1-scala"]
NEVER, INF = (float("inf"), float("inf")), float("inf")


def judged(recording, group, with_events=False, **known):
    """Return the causes of a recorded group, and the findings of the rule about them."""
    events = recording.events_by_group.get(group, ()) if with_events else ()
    known = replace(recording.context, **known)
    tables = {"causes": [], "client_findings": [], "observed": []}
    for name, row in check_rows(known, group, recording.rows_by_group[group], events):
        tables.get(name, []).append(row)
    found = [one for one in tables["client_findings"] if one["rule"] == CAUSES_NO_REBALANCE.name]
    begun = [row["started_ms"] for row in tables["observed"] if row["started_ms"] is not None]
    assert sorted(begun) == [row["started_ms"] for row in tables["causes"]]
    return tables["causes"], found


def by(causes):
    return Counter(row["by"] for row in causes if row["by"] != "load")


def restarts():
    """Return the members of the dynamic group that faults restart, each once."""
    return [one["target"] for one in BOUNCE.run.faults if one["group"] == "dynamic"]


def test_a_restart_is_the_cause_of_two_rebalances():
    causes, found = judged(BOUNCE, "dynamic")
    named = Counter(row["what"] for row in causes if row["by"] == "fault")
    assert named == {f"member.restart of {name}": 2 for name in restarts()}
    assert (by(causes).keys(), found) == ({"fault"}, [])


def test_what_no_fault_explains_a_client_did_by_itself():
    causes, found = judged(BOUNCE, "dynamic", acts=())
    assert by(causes) == {"client": 2 * len(restarts())}
    left, again = causes[2:4]  # the group forms with two rebalances
    assert left["what"] == f"{restarts()[0]} left by itself"
    assert again["what"].startswith(f"{restarts()[0]} joined again ")
    assert {one["client_id"] for one in found} == set(restarts())
    for one in found:
        did = "caused 2 rebalances by itself: it left and joined again"
        assert one["what"] == f"{one['client_id']} {did}"
        assert one["on_time"]


def test_what_the_load_started_and_ended_it_caused():
    causes, found = judged(TAPPED["lost-join-answer-4.3.0"], "dynamic", True, acts=())
    assert (by(causes), found) == ({}, [])
    assert {row["by"] for row in causes} == {"load"}


def test_before_and_after_the_faults_the_load_causes_all():
    causes, found = judged(BOUNCE, "dynamic", acts=(), loaded_ms=NEVER)
    assert ({row["by"] for row in causes}, found) == ({"load"}, [])


def test_what_is_done_to_another_group_or_member_explains_nothing():
    fault = Act("fault", "dynamic", frozenset([restarts()[0]]), 0.0, 1e15, "f")
    assert by(judged(BOUNCE, "dynamic", acts=(fault,))[0])["fault"] == 2
    assert by(judged(BOUNCE, "dynamic", acts=(fault._replace(group="static"),))[0])["fault"] == 0
    anyone = fault._replace(clients=frozenset())
    assert by(judged(BOUNCE, "dynamic", acts=(anyone,))[0]) == {"fault": 2 * len(restarts())}


def test_members_that_an_operator_removes_did_nothing_by_themselves():
    """KIP-345's batch removal, by a client that is no member; the removed one joins again."""
    causes, found = judged(SCALA, "removal")
    assert by(causes)["unknown"] == 3
    assert all("removed removal-" in row["what"] for row in causes if row["by"] == "unknown")
    assert [one["client_id"] for one in found] == ["removal-a"]  # whose script ends in silence


def test_a_session_expires_by_itself_unless_the_machine_stood_still():
    causes, _ = judged(SCALA, "sessions", loaded_ms=(0.0, INF))
    expired, back = (row for row in causes if row["who"] == "sessions-b")
    assert expired["what"] == "sessions-b let its session expire by itself"
    assert back["by"] == "client"
    until_ms = expired["started_ms"]
    stood = Disturbance("", until_ms - 2_000.0, until_ms, "the machine", Source.STANDSTILL)
    known = {"loaded_ms": (0.0, INF), "standstills": (stood,)}
    causes, _ = judged(SCALA, "sessions", **known)
    assert by(causes)["unknown"] == 2  # and so is its return


def test_a_failover_that_no_fault_explains_is_the_broker_s():
    recording = RECORDINGS["kafka-4.3.0"]
    (killed,) = (one["broker"] for one in recording.run.faults if one["broker"] is not None)
    causes, _ = judged(recording, "failover", acts=(), loaded_ms=(0.0, INF))
    new = [row["what"].split()[1] for row in causes if row["by"] == "broker"]
    assert new
    assert killed not in new


# rebalances made up

GROUP = "g"


def request(api, at_ms, client="c", body=(), response=(), answered_ms=None):
    answered_ms = at_ms + 1.0 if answered_ms is None else answered_ms
    body = {"memberId": f"{client}-id", **dict(body)}
    response = {"errorCode": 0, "memberId": f"{client}-id", **dict(response)}
    seen = (at_ms, at_ms, at_ms, answered_ms, body, response)
    return ObservedRequest(f"1:{at_ms:.0f}", "1", api, 5, client, "x", *seen)


def row(at_ms, reason, member="c-id", outcome="match"):
    return {
        "observed_started_ms": at_ms, "observed_reason": reason, "observed_member_id": member,
        "outcome": outcome,
    }  # fmt: skip


def caused(requests, rebalances, findings=(), **known):
    causes = Causes(GroupEvidence(context(**known), GROUP))
    causes.evidence.__dict__["beforehand"] = SimpleNamespace(epoch_events=())
    errors = [one.response_fields["errorCode"] for one in requests]
    batch = SimpleNamespace(
        seen=requests,
        requests=SimpleNamespace(error_codes=errors),
        chunk=SimpleNamespace(lines=(), events=()),
    )
    causes.add(batch)
    found = list(causes.rows(rebalances, findings))
    return [one for name, one in found if name == "causes"], [
        one for name, one in found if name == "client_findings"
    ]


JOINED = request("JOIN_GROUP", 1_000.0), request("SYNC_GROUP", 1_100.0)
LEFT = request("LEAVE_GROUP", 9_000.0)


@pytest.mark.parametrize(
    ("outcome", "who"),
    [("match", "client"), ("late", "client"), ("early", "broker"), ("unexpected", "broker")],
)
def test_what_the_reference_coordinator_does_not_do_is_the_broker_s(outcome, who):
    causes, _ = caused([*JOINED, LEFT], [row(9_000.0, Reason.LEAVE, outcome=outcome)])
    assert [one["by"] for one in causes] == [who]


@pytest.mark.parametrize(
    ("reason", "who"),
    [(Reason.ASSIGNMENT_ERROR, "broker"), (None, "unknown"), (Reason.LEAVE, "unknown")],
)
def test_a_rebalance_of_no_known_member(reason, who):
    causes, found = caused(JOINED, [row(9_000.0, reason, member="")])
    assert ([one["by"] for one in causes], found) == ([who], [])


@pytest.mark.parametrize(("until_ms", "who"), [(4_500.0, "fault"), (1_900.0, "client")])
def test_a_member_that_a_fault_kept_from_polling_leaves_later(until_ms, who):
    """Paused, it goes on with its heartbeats, until its poll interval of 5 s is over (KIP-62)."""
    joined = request("JOIN_GROUP", 1_000.0, body={"rebalanceTimeoutMs": 5_000})
    beats = [joined, *(request("HEARTBEAT", at_ms) for at_ms in (6_000.0, 8_000.0)), LEFT]
    pause = Act("fault", GROUP, frozenset(["c"]), 1_500.0, until_ms, "f")
    stood = Disturbance("", until_ms - 2_000.0, until_ms, "the machine", Source.STANDSTILL)
    rebalances = [row(9_000.0, Reason.LEAVE)]
    assert caused(beats, rebalances, acts=(pause,))[0][0]["by"] == who
    is_client = caused(beats, rebalances, standstills=(stood,))[0][0]["by"] == "client"
    assert is_client is (who == "client")


@pytest.mark.parametrize(("until_ms", "left"), [(7_000.0, 1), (9_000.0, 0)])
def test_what_another_rule_says_is_not_said_twice(until_ms, left):
    """Of the time between the last answer, at 8 s, and the rebalance at 9 s."""
    beats = [*JOINED, request("HEARTBEAT", 8_000.0), LEFT]
    other = {"client_id": "c", "from_ms": 0.0, "until_ms": until_ms - 1_000.0}
    causes, found = caused(beats, [row(9_000.0, Reason.LEAVE)], [other])
    assert ([one["by"] for one in causes], len(found)) == (["client"], left)
    _, found = caused(beats, [row(9_000.0, Reason.LEAVE)], [{**other, "client_id": "d"}])
    assert len(found) == 1


def test_what_another_rule_says_leaves_the_rebalances_at_other_times():
    beats = [*JOINED, request("HEARTBEAT", 8_000.0), LEFT]
    beats += request("JOIN_GROUP", 20_000.0), request("LEAVE_GROUP", 30_000.0)
    rows = [row(9_000.0, Reason.LEAVE), row(30_000.0, Reason.LEAVE)]
    _, (both,) = caused(beats, rows)
    assert both["what"] == "c caused 2 rebalances by itself: it left 2 times"
    other = {"client_id": "c", "from_ms": 8_500.0, "until_ms": 9_500.0}
    _, (left,) = caused(beats, rows, [other])
    assert (left["what"], left["at_ms"]) == ("c caused a rebalance by itself: it left", 30_000.0)


@pytest.mark.parametrize(("after_ms", "who"), [(140.0, "d"), (3_000.0, "c")])
def test_a_member_that_rejoins_at_once_does_so_for_the_rebalance_before(after_ms, who):
    """As kafka-python's leader, which knows its topics only once it leads."""
    beats = [
        request("JOIN_GROUP", 500.0, "d"),
        *JOINED,
        request("LEAVE_GROUP", 4_000.0, "d"),
        request("JOIN_GROUP", 4_100.0),
        request("SYNC_GROUP", 4_199.0),
        again := request("JOIN_GROUP", 4_200.0 + after_ms),
    ]
    rows = [row(4_000.0, Reason.LEAVE, "d-id"), row(again.at_ms, Reason.LEADER_REJOIN)]
    causes, _ = caused(beats, rows)
    assert [one["who"] for one in causes] == ["d", who]


def test_a_member_that_rejoins_again_and_again_is_the_cause_of_all_but_one():
    beats = [*JOINED]
    times = [4_000.0 + 300.0 * number for number in range(5)]
    for at_ms in times:
        beats += request("JOIN_GROUP", at_ms), request("SYNC_GROUP", at_ms + 99.0)
    fault = Act("fault", None, frozenset(), 3_000.0, 3_001.0, "f")
    causes, _ = caused(beats, [row(at_ms, Reason.LEADER_REJOIN) for at_ms in times], acts=(fault,))
    assert [one["by"] for one in causes][2:] == ["client"] * 3


def test_members_that_rejoin_one_after_the_other_do_so_for_the_same_rebalance():
    beats = [request("JOIN_GROUP", 500.0, "d"), request("LEAVE_GROUP", 4_000.0, "d")]
    for client, at_ms in (("c", 4_300.0), ("e", 4_600.0)):
        beats += request("SYNC_GROUP", at_ms - 100.0, client), request("JOIN_GROUP", at_ms, client)
    rows = [row(4_000.0, Reason.LEAVE, "d-id"), row(4_300.0, Reason.LEADER_REJOIN)]
    causes, _ = caused(beats, [*rows, row(4_600.0, Reason.LEADER_REJOIN, "e-id")])
    assert [one["who"] for one in causes] == ["d", "d", "d"]


def subscribed(assignor, owned):
    return {"protocols": [{"name": assignor, "metadata": owned}]}, {"protocolName": assignor}


@pytest.mark.parametrize(
    ("assignor", "owns", "who"),
    [
        ("cooperative-sticky", ["ab"], ["d"]),
        ("stream", ["ab"], ["d"]),  # Kafka Streams
        ("range", ["ab"], ["c"]),
        ("cooperative-sticky", ["abc"], ["c"]),
        ("cooperative-sticky", ["ab", "a"], ["d", "d"]),  # two were new, one after the other
        ("cooperative-sticky", ["ab", "ab"], ["d", "c"]),
    ],
)
def test_a_cooperative_member_gives_up_for_the_rebalance_before(assignor, owns, who, monkeypatch):
    """KIP-429: it joins again without what it had to revoke, however long that takes."""
    read = lambda owned: SimpleNamespace(owned=owned)
    monkeypatch.setattr("reports.judgement.causes.subscription_in", read)
    beats = [
        request("JOIN_GROUP", 500.0, "d"),
        request("JOIN_GROUP", 1_000.0, "c", *subscribed(assignor, "abc")),
        request("LEAVE_GROUP", 4_000.0, "d"),
    ]
    rows = [row(4_000.0, Reason.LEAVE, "d-id")]
    for number, owned in enumerate(owns):
        at_ms = 9_000.0 + 4_000.0 * number
        beats.append(request("SYNC_GROUP", at_ms - 3_000.0))
        beats.append(request("JOIN_GROUP", at_ms, "c", *subscribed(assignor, owned)))
        rows.append(row(at_ms, Reason.MEMBER_METADATA))
    causes, _ = caused(beats, rows)
    assert [one["who"] for one in causes] == ["d", *who]


def test_the_rule_is_one_of_all():
    assert CLIENT_RULES[CAUSES_NO_REBALANCE.name] is CAUSES_NO_REBALANCE
