"""Synthesized requests of one client: what it sends, and what it is answered."""

from collections.abc import Callable, Sequence
from copy import copy
from itertools import count
from math import inf
from typing import Any

from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_rules.findings import ClientRules
from reports.judgement.clients.client_verdict import about_client
from reports.judgement.disturbances import Disturbances
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.run.disturbance import Disturbance
from reports.judgement.run.history import EVENTS, ClientEvent
from tests.reports.judgement.contexts import context

SESSION_MS, REBALANCE_MS = 6_000, 10_000
ANSWERS_MS = 5.0


class Conversation:
    """A client `c` that talks to broker 1 from 0 ms on; `wait` lets time pass."""

    def __init__(self, instance: str | None = None, **rules: Any) -> None:
        self.now_ms, self.name, self.answers_ms = 0.0, "c", ANSWERS_MS
        self.member = self.connection = ""
        self.instance = instance
        self.broker = "1"
        self.generation = 0
        self.rules = ClientRules(context(**rules), "g")
        self._lines = count(1)
        self.start()

    def start(self) -> "Conversation":
        """A new process begins."""
        self.event("created")
        self.connection, self.member = f"connection-{self.now_ms}", ""
        return self

    def other(self, name: str, instance: str | None = None) -> "Conversation":
        """Another client of the group, from now on."""
        other = copy(self).now(name=name, instance=instance, generation=0)
        return other.start()

    def event(self, name: str) -> "Conversation":
        """Its history says something."""
        event = ClientEvent(self.now_ms, EVENTS.index(name), self.name, sent_at_ms=inf)
        self.rules.add((), (), [event])
        return self.wait(1)

    def wait(self, ms: float) -> "Conversation":
        """Let time pass."""
        self.now_ms += ms
        return self

    def now(self, **fields: Any) -> "Conversation":
        """Go on with another member id, broker, connection or instance id."""
        vars(self).update(fields)
        return self

    def commit(self, error: int = 0) -> "Conversation":
        """Commit an offset."""
        self.send("OFFSET_COMMIT", error)
        return self

    def leave(self) -> "Conversation":
        """Send a LeaveGroup."""
        self.send("LEAVE_GROUP")
        return self

    def closes(self, *, leaves: bool = False) -> "Conversation":
        """Close the client."""
        self.event("closing")
        return (self.leave() if leaves else self).event("closed")

    def again(self, times: int, step: Callable[["Conversation"], object]) -> "Conversation":
        """Do something several times."""
        for _ in range(times):
            step(self)
        return self

    def send(self, api: str, error: int = 0, /, **fields: Any) -> dict[str, Any]:
        """Send a request, which is answered at once; return the answer."""
        response = {"errorCode": error, **fields.pop("response", {})}
        request = {
            "groupId": "g",
            "memberId": self.member,
            "groupInstanceId": self.instance,
            "generationId": self.generation,
            **fields,
        }
        if api == "OFFSET_COMMIT":
            partition = {"partitionIndex": 0, "committedOffset": 7}
            request["topics"] = [{"name": "t", "partitions": [partition]}]
            answered = [{"partitionIndex": 0, "errorCode": error}]
            response = {"topics": [{"name": "t", "partitions": answered}]}
        seen = ObservedRequest(
            f"{self.broker}:{next(self._lines)}", self.broker, api, 9, self.name, self.connection,
            self.now_ms, self.now_ms, self.now_ms + self.answers_ms, self.now_ms + self.answers_ms,
            request, response,
        )  # fmt: skip
        self.rules.add([seen], [None if api == "OFFSET_COMMIT" else error])
        self.wait(self.answers_ms + 1)
        return response

    def join(self, error: int = 0, /, **fields: Any) -> "Conversation":
        """Send a JoinGroup; if it is let in, it is a member of the next generation."""
        timeouts = {"sessionTimeoutMs": SESSION_MS, "rebalanceTimeoutMs": REBALANCE_MS}
        given = {0: "m1", 79: "m1"}.get(error, "")
        answer = {"memberId": given, "generationId": self.generation + 1}
        self.send("JOIN_GROUP", error, **timeouts, **{"response": answer, **fields})
        if error == 0:
            self.generation += 1
            self.member = self.member or given
        return self

    def sync(self, error: int = 0) -> "Conversation":
        """Send a SyncGroup."""
        self.send("SYNC_GROUP", error)
        return self

    def beat(self, error: int = 0, times: int = 1, every_ms: float = 700.0) -> "Conversation":
        """Send heartbeats, the last of them answered so."""
        for number in range(times):
            self.wait(every_ms)
            self.send("HEARTBEAT", error if number == times - 1 else 0)
        return self

    def member_of_it(self) -> "Conversation":
        """Join, sync and send some heartbeats."""
        return self.join().sync().beat(times=8)

    def found(self, busy: Sequence[Disturbance]) -> list[dict[str, Any]]:
        """What a verdict says about it, if the machine was busy then."""
        rows = [{"group": "g", **row} for row in self.rules.rows()]
        beside = Disturbances(busy, {})
        return [about_client(row, LogPlaces(), beside) for row in rows]

    @property
    def broken(self) -> dict[str, list[str]]:
        """The rules that it broke, each with the requests that show it."""
        found: dict[str, list[str]] = {}
        for row in self.rules.rows():
            found.setdefault(row["rule"], []).extend(row["requests"].split(","))
        return found
