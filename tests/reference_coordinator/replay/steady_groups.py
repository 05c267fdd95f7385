"""Small groups that are steady most of the time, made at random, with what may end a steady run.

Members are static or dynamic and have sessions of their own. They send heartbeats and commits, now
and then after a pause about as long as their session, so that some sessions end and the group
rebalances. The broker may stand still. Then a few responses are altered. The oracle itself gives
the responses, so what is not altered is right.
"""

import random
from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Effect, JoinResponse, Response, Transition
from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import NEWEST, profile_for
from reference_coordinator.classic.state import Group, State
from reference_coordinator.driving.client import Client
from reference_coordinator.driving.driver import Agenda
from reference_coordinator.driving.simulation import Exchange, Process, Simulation
from reference_coordinator.replay import (
    EpochEvent,
    Evidence,
    Hint,
    HintKind,
    ObservedRequest,
    Stall,
)

START_MS = 1_763_800_000_000.0
SETTINGS = Settings(initial_rebalance_delay_ms=500, min_session_timeout_ms=1_000)
RELEASES = (NEWEST, profile_for("3.9.1", "scala"), profile_for("2.4.1", "scala"))
SESSIONS_MS = (3_000, 6_000, 10_000)
NEAR_MS = (-700.0, -520.0, -30.0, -12.0, -10.5, -9.5, -1.0, -0.001, 0.0, 0.5, 9.0, 16.0, 600.0)
"""How much longer than the session a pause is."""
VERSIONS = {"JOIN_GROUP": 5, "SYNC_GROUP": 3, "HEARTBEAT": 3, "OFFSET_COMMIT": 8}


class SteadyGroup(Simulation):
    """A group of one broker in virtual time; `evidence` are its requests with their responses."""

    def __init__(
        self, dice: random.Random, profile: Profile, lasts_ms: float, requests_in_session: int
    ) -> None:
        super().__init__(Group("g"), profile, agenda=Agenda(START_MS))
        self.dice, self.requests_in_session = dice, requests_in_session
        self.stalls: list[Stall] = []
        self.hints: list[Hint] = []
        self.evidence: list[ObservedRequest] = []
        for number in range(dice.randint(1, 5)):
            instance = f"i-{number}" if dice.random() < 0.6 else None
            client = Client(f"m-{number}", instance, dice.choice(SESSIONS_MS), 4_000)
            self._plan(dice.uniform(1, 400), "JOIN_GROUP", Process(client, VERSIONS))
        for _ in range(dice.choice((0, 0, 1, 2))):
            from_ms = START_MS + dice.uniform(3_000, lasts_ms)
            stall = Stall("1", from_ms, from_ms + dice.uniform(300, 4_000), dice.random() < 0.7)
            self.stalls.append(stall)
        self.agenda.run(START_MS + lasts_ms)
        self.evidence.sort(key=lambda seen: seen.at_ms)

    def _acts_ms(self, at_ms: float) -> float:
        """Return when the broker does what is due at a time."""
        for stall in sorted(self.stalls, key=lambda stall: stall.from_ms):
            if stall.from_ms <= at_ms < stall.until_ms:
                at_ms = stall.until_ms
        return at_ms

    def expires_ms(self, deadline_ms: float) -> float:
        """Let a timer expire a little late, and not while the broker stands still."""
        return self._acts_ms(deadline_ms + self.dice.choice((0.0, 0.4, 15.0)))

    def _plan(self, after_ms: float, api: str, process: Process) -> None:
        act = lambda: self.receive(self._asked(process, api))
        self.agenda.at(self._acts_ms(self.agenda.now_ms + after_ms), act)

    def _asked(self, process: Process, api: str) -> Exchange:
        """Let a member send a request, now and then of an older generation."""
        older = api != "JOIN_GROUP" and self.dice.random() < 0.003
        generation = process.client.generation - older
        partitions = [{"partitionIndex": p, "committedOffset": process.sent} for p in (0, 1)]
        return self.send(
            process, api, generationId=generation, generationIdOrMemberEpoch=generation,
            topics=[{"name": "orders", "partitions": partitions}],
        )  # fmt: skip

    def fire(self, timer: Timer) -> None:
        """Note the line that shows when a session ended."""
        if timer.kind is TimerKind.SESSION:
            hint = Hint(self.timers[timer], HintKind.SESSION_EXPIRED, timer.member_id)
            self.hints.append(hint)
        super().fire(timer)

    def absorb(self, effect: Effect) -> None:
        """Note the line that shows when a join phase ended."""
        if isinstance(effect, Transition) and effect.after is State.COMPLETING_REBALANCE:
            hint = Hint(self.now_ms, HintKind.JOIN_PHASE_ENDED, generation=effect.generation)
            self.hints.append(hint)
        super().absorb(effect)

    def answered(self, exchange: Exchange, response: Response) -> None:
        """Add a response to the evidence, and plan what the member does then."""
        dice, now_ms, sent_ms = self.dice, self.now_ms, exchange.at_ms
        answered_ms = now_ms + dice.uniform(0.1, 2)
        handled_ms = max(sent_ms + dice.choice((0.1, 0.5, 0.5, 30.0)), now_ms + 0.1)
        self.evidence.append(exchange.observed(
            response, sent_ms - dice.choice((0.3, 5.0, 5.0, 40.0)), sent_ms,
            min(answered_ms, handled_ms), answered_ms,
        ))  # fmt: skip
        process = exchange.process
        process.client = process.client.hearing(response)
        after_ms, api = self._next(process.client, response)
        self._plan(answered_ms - now_ms + after_ms, api, process)

    def _next(self, client: Client, response: Response) -> tuple[float, str]:
        """Return after how long a member sends its next request, and which."""
        dice = self.dice
        if isinstance(response, JoinResponse) and response.error == Error.NONE:
            return dice.uniform(1, 60), "SYNC_GROUP"
        if response.error != Error.NONE:
            return dice.uniform(1, 300), "JOIN_GROUP"
        api = "OFFSET_COMMIT" if dice.random() < 0.3 else "HEARTBEAT"
        if dice.random() < 0.015:
            return client.session_ms + dice.choice(NEAR_MS), api
        return client.session_ms / self.requests_in_session + dice.uniform(-60, 60), api


def _altered(seen: ObservedRequest, dice: random.Random) -> ObservedRequest:
    """Return a request with something wrong about its response, or with none."""
    error = int(dice.choice((Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS,
                             Error.FENCED_INSTANCE_ID, Error.REQUEST_TIMED_OUT)))  # fmt: skip
    what = 0 if seen.response is None else dice.randrange(4)
    if what == 0:
        return replace(seen, answered_ms=seen.answered_ms + dice.choice((900, 990, 1_010, 3_000)))
    if what == 1 and dice.random() < 0.5:
        return replace(seen, response=None, answered_ms=float("inf"))
    if seen.api != "OFFSET_COMMIT":
        return replace(seen, response={**seen.response_fields, "errorCode": error})
    partitions = [
        {"partitionIndex": part, "errorCode": error} for part in range(dice.choice((1, 2, 2)))
    ]
    if dice.random() < 0.3:
        partitions[-1]["errorCode"] = 0
    return replace(seen, response={"topics": [{"name": "orders", "partitions": partitions}]})


def steady_group(seed: int) -> tuple[Evidence, Profile]:
    """Return the evidence of a group, and the rules of its coordinator."""
    dice = random.Random(seed)
    profile = dice.choice(RELEASES).with_settings(SETTINGS)
    often = dice.choice((3, 3, 12))
    simulated = SteadyGroup(dice, profile, dice.uniform(30_000, 270_000) / often, often)
    requests = simulated.evidence
    for _ in range(dice.choice((0, 0, 1, 1, 2, 5)) if requests else 0):
        place = dice.randrange(len(requests))
        requests[place] = _altered(requests[place], dice)
    hints, events = simulated.hints if dice.random() < 0.4 else [], []
    if dice.random() < 0.4:
        events = [
            EpochEvent(START_MS - 200, "1", "loading"),
            EpochEvent(START_MS - 100, "1", "loaded"),
        ]
    stalls = simulated.stalls if dice.random() < 0.8 else []
    return Evidence("g", tuple(requests), tuple(hints), tuple(events), tuple(stalls)), profile
