"""Before 2.6.0 nothing shows who succeeds a leader that group.max.size refused (seen on 2.4.1).

A full group of three dynamic members, as pending ones may get in. The leader rejoins, is refused
and so is gone; the group goes on. That `b` leads now shows only later, when its JoinGroup makes the
group rebalance: it was settled when `b` sent a SyncGroup that seemed to change nothing.
"""

from dataclasses import replace
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Settings
from reference_coordinator.classic.releases import PROFILES
from tests.reference_coordinator.replay.conftest import IDS, Scenario, unexplained

SETTINGS = Settings(initial_rebalance_delay_ms=500, min_session_timeout_ms=1_000, max_size=2)
DYNAMIC = {"groupInstanceId": None}
NEWCOMER = DYNAMIC | {
    "sessionTimeoutMs": 60_000,
    "rebalanceTimeoutMs": 60_000,
    "protocolType": "consumer",
    "protocols": [{"name": "range", "metadata": "bQ=="}],
}


def join(scenario: Scenario, who: str, at: float, answered: float, **response: Any) -> None:
    refused = {"generationId": -1, "protocolName": "", "leader": "", "memberId": "", "members": []}
    answer = refused | response
    scenario.ask("JOIN_GROUP", who, at, NEWCOMER, answer, answered=answered, before=1)
    scenario.alter_last(api_version=4)


def joined(
    scenario: Scenario, who: str, at: float, answered: float, leader: str, names: str
) -> None:
    led = [{"memberId": IDS[name], "metadata": "bQ=="} for name in names if who == leader]
    join(
        scenario, who, at, answered, generationId=1 if leader == "a" else 2, protocolName="range",
        leader=IDS[leader], memberId=IDS[who], members=led,
    )  # fmt: skip


def sync(scenario: Scenario, who: str, at: float, answered: float, gives: str = "") -> None:
    work = [{"memberId": IDS[name], "assignment": f"{name}==="} for name in gives]
    body = DYNAMIC | {"generationId": 2 if gives == "c" else 1, "assignments": work}
    answer = {"assignment": f"{who}==="}
    scenario.ask("SYNC_GROUP", who, at, body, answer, answered=answered, before=1)


def heartbeat(scenario: Scenario, who: str, at: float, error: int = 0, generation: int = 1) -> None:
    body = DYNAMIC | {"generationId": generation}
    scenario.ask("HEARTBEAT", who, at, body, {"errorCode": error}, before=1)


def test_a_sync_group_that_seems_to_change_nothing_may_settle_who_leads() -> None:
    scenario = Scenario()
    for place, who in enumerate("abc"):
        first = {"errorCode": Error.MEMBER_ID_REQUIRED, "memberId": IDS[who]}
        join(scenario, who, 10 * place, 10 * place + 1, **first)
        scenario.alter_last(request={**scenario.requests[-1].request, "memberId": ""})
        joined(scenario, who, 100 + 10 * place, 1_101, "a", "abc")
    sync(scenario, "b", 1_200, 1_222)
    sync(scenario, "c", 1_210, 1_222)
    sync(scenario, "a", 1_220, 1_222, gives="abc")
    join(scenario, "a", 2_000, 2_001, errorCode=Error.GROUP_MAX_SIZE_REACHED)
    sync(scenario, "b", 2_500, 2_501)
    heartbeat(scenario, "b", 2_600)
    heartbeat(scenario, "c", 2_700)
    join(scenario, "b", 3_000, 3_301, errorCode=Error.UNKNOWN_MEMBER_ID)
    heartbeat(scenario, "c", 3_200, Error.REBALANCE_IN_PROGRESS)
    scenario.ask("LEAVE_GROUP", "b", 3_300, DYNAMIC, {}, before=1)
    scenario.alter_last(api_version=2, connection="b leaves")
    joined(scenario, "c", 3_400, 3_401, "c", "c")
    sync(scenario, "c", 3_500, 3_501, gives="c")
    heartbeat(scenario, "c", 3_600, generation=2)
    scenario.requests = [
        replace(seen, latest_ms=min(seen.latest_ms, seen.at_ms + 5)) for seen in scenario.requests
    ]
    outcome = scenario.replay(rules=PROFILES["2.4.1"].with_settings(SETTINGS))
    assert outcome.violations == ()
    assert unexplained(outcome) == []
    assert [row.reason for row in outcome.rows][1:] == ["leader_rejoin"]
