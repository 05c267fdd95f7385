"""Before 2.6.0 nothing shows who succeeds a leader that group.max.size refused (seen on 2.4.1).

A full group of three dynamic members, as pending ones may get in. The leader rejoins, is refused
and so is gone; the group goes on. That `b` leads now shows only later, when its JoinGroup makes the
group rebalance: it was settled when `b` sent a SyncGroup that seemed to change nothing.
"""

from dataclasses import dataclass, field
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Settings
from reference_coordinator.classic.releases import profile_for
from reference_coordinator.replay import Evidence, ObservedRequest, Replay, replay

START = 1_000_000.0
NEWCOMER = {
    "sessionTimeoutMs": 60_000,
    "rebalanceTimeoutMs": 60_000,
    "protocolType": "consumer",
    "protocols": [{"name": "range", "metadata": "bQ=="}],
}


@dataclass
class Scenario:
    """Requests of dynamic members, with responses; times are ms after the start."""

    requests: list[ObservedRequest] = field(default_factory=list)

    def ask(
        self, api: str, version: int, who: str, at: float, answered: float, body: Any, response: Any
    ) -> None:
        done = START + answered
        self.requests.append(
            ObservedRequest(
                id=f"{api}:{who}:{at:g}",
                broker="1",
                api=api,
                api_version=version,
                client_id=who,
                connection=f"{who} {api == 'LEAVE_GROUP'}",
                earliest_ms=START + at - 1,
                at_ms=START + at,
                latest_ms=min(done, START + at + 5),
                answered_ms=done,
                request={"groupId": "g", "memberId": f"{who}-1", **body},
                response={"errorCode": 0, **response},
            )
        )

    def join(self, who: str, at: float, answered: float, error: int = 0, **response: Any) -> None:
        asked = {**NEWCOMER, "memberId": ""} if error == Error.MEMBER_ID_REQUIRED else NEWCOMER
        known = f"{who}-1" if error in (0, Error.MEMBER_ID_REQUIRED) else ""
        nothing = {"generationId": -1, "protocolName": "", "leader": "", "members": []}
        answer = {"errorCode": error, "memberId": known, **nothing, **response}
        self.ask("JOIN_GROUP", 4, who, at, answered, asked, answer)

    def joined(self, who: str, at: float, answered: float, leader: str, everyone: str) -> None:
        led = [{"memberId": f"{name}-1", "metadata": "bQ=="} for name in everyone]
        self.join(
            who, at, answered, generationId=1 if leader == "a" else 2, protocolName="range",
            leader=f"{leader}-1", members=led if who == leader else [],
        )  # fmt: skip

    def sync(
        self, who: str, at: float, answered: float, gives: str = "", generation: int = 1
    ) -> None:
        work = [{"memberId": f"{name}-1", "assignment": f"{name}==="} for name in gives]
        asked = {"generationId": generation, "assignments": work}
        self.ask("SYNC_GROUP", 2, who, at, answered, asked, {"assignment": f"{who}==="})

    def heartbeat(self, who: str, at: float, error: int = 0, generation: int = 1) -> None:
        asked = {"generationId": generation}
        self.ask("HEARTBEAT", 2, who, at, at + 1, asked, {"errorCode": error})

    def replay(self) -> Replay:
        rules = profile_for("2.4.1", "scala")
        assert rules is not None
        settings = Settings(
            initial_rebalance_delay_ms=500, min_session_timeout_ms=1_000, max_size=2
        )
        requests = tuple(sorted(self.requests, key=lambda seen: seen.at_ms))
        return replay(Evidence("g", requests), rules.with_settings(settings))


def refused_leader() -> Scenario:
    scenario = Scenario()
    for place, who in enumerate("abc"):
        scenario.join(who, 10 * place, 10 * place + 1, Error.MEMBER_ID_REQUIRED)
        scenario.joined(who, 100 + 10 * place, 1_101, "a", "abc")
    scenario.sync("b", 1_200, 1_222)
    scenario.sync("c", 1_210, 1_222)
    scenario.sync("a", 1_220, 1_222, gives="abc")
    scenario.join("a", 2_000, 2_001, Error.GROUP_MAX_SIZE_REACHED)
    return scenario


def test_a_sync_group_that_seems_to_change_nothing_may_settle_who_leads() -> None:
    scenario = refused_leader()
    scenario.sync("b", 2_500, 2_501)
    scenario.heartbeat("b", 2_600)
    scenario.heartbeat("c", 2_700)
    scenario.join("b", 3_000, 3_301, Error.UNKNOWN_MEMBER_ID)
    scenario.heartbeat("c", 3_200, Error.REBALANCE_IN_PROGRESS)
    scenario.ask("LEAVE_GROUP", 2, "b", 3_300, 3_301, {}, {})
    scenario.joined("c", 3_400, 3_401, "c", "c")
    scenario.sync("c", 3_500, 3_501, gives="c", generation=2)
    scenario.heartbeat("c", 3_600, generation=2)
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert all(checked.explained for checked in outcome.checked)
    assert [row.reason for row in outcome.rows][1:] == ["leader_rejoin"]
