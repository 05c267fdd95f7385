"""Writes the log that another coordinator would have printed for the same recorded requests.

The requests of a real broker's group.log are run through `step` or a mutant of it, at their
recorded times; lines and answers are printed in the broker's own grammar, agreeing with each other.
"""

import heapq
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_coordinator.effects import (
    Answer,
    Arm,
    AssignmentReceived,
    Disarm,
    Effect,
    Persist,
    Reason,
    Response,
    Transition,
)
from reference_coordinator.events import (
    Choices,
    Event,
    JoinReceived,
    LeaveReceived,
    Loaded,
    LoadStarted,
    RecordWritten,
    Timer,
    TimerFired,
    TimerKind,
    Unloaded,
)
from reference_coordinator.mutants import Step
from reference_coordinator.profiles import Profile
from reference_coordinator.replay import Observed
from reference_coordinator.replay.wire import event_of
from reference_coordinator.state import Group, Service, State
from tests.reports.broker_lines import MANAGER, REASONS, SAYINGS, body

LINE = re.compile(r"^(\d+) (\d+) (\d+) (\S+) (\w+) (.*) \(([^()\s]+)\)$")
SHARD = re.compile(r"topic=__consumer_offsets partition=(\d+)\] .*?[Gg]roup (?:Id=)?(\S+?)[\s.]")
ASKED = re.compile(r'"request":\{"groupId":"([^"]+)"')
SERVING = re.compile(
    r"\] (Scheduling loading of|Finished loading of|Started unloading) metadata \w+ "
    r"__consumer_offsets-(\d+) "
)
WRITE_MS = 2.0
"""How long this broker takes to store a record."""


@dataclass
class Recorded:
    """One recorded request: its line's JSON, the thread that printed it, its times in ms."""

    body: dict[str, Any]
    thread: str
    taken_ms: float
    observed: Observed

    @property
    def group(self) -> str:
        return str(self.body["request"]["groupId"])


@dataclass
class LyingBroker:
    """One broker's log, told anew by `coordinator`."""

    source: Path
    coordinator: Step
    profile: Profile
    groups: dict[str, Group] = field(default_factory=dict)
    timers: dict[tuple[str, Timer], float] = field(default_factory=dict)
    open: dict[str, Recorded] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    queue: list[tuple[float, int, str, Any]] = field(default_factory=list)
    printed: list[tuple[float, int, str]] = field(default_factory=list)
    count: int = 0

    def tell(self) -> str:
        """Return the new log's text."""
        offset = self._read()
        while self.queue:
            at_ms, _, group, item = heapq.heappop(self.queue)
            for event in self._events(group, item, at_ms):
                self._step(group, event)
        self.printed.sort()
        return "".join(
            f"{sn} {int(at_ms + offset)} {round(at_ms * 1e6)} {text}\n"
            for sn, (at_ms, _, text) in enumerate(self.printed, 1)
        )

    def _read(self) -> float:
        """Queue what the broker was asked, keep its own lines; return its clock's offset."""
        offset = 0.0
        lines = [m for text in self.source.read_text().splitlines() if (m := LINE.match(text))]
        asked = {found[1] for match in lines if (found := ASKED.search(match[6]))}
        for match in lines:
            if (shard := SHARD.search(match[6])) and shard[2] in asked:
                self.partitions.setdefault(shard[2], int(shard[1]))
        for match in lines:
            now = int(match[3]) / 1e6
            offset = max(offset, int(match[2]) - now)
            if match[6].startswith("Completed request:"):
                self._ask(match, now)
            elif "partition=" not in match[6]:
                self._print(now, f"{match[4]} {match[5]} {match[6]} ({match[7]})")
            if serving := SERVING.search(match[6]):
                self._serve(serving, now)
        return offset

    def _serve(self, serving: re.Match[str], now: float) -> None:
        event: Event = {
            "Scheduling loading of": LoadStarted(now),
            "Finished loading of": Loaded(now, None),
            "Started unloading": Unloaded(now),
        }[serving[1]]
        for group, partition in self.partitions.items():
            if partition == int(serving[2]):
                self._push(now, group, event)

    def _ask(self, match: re.Match[str], now: float) -> None:
        line = json.loads(match[6].removeprefix("Completed request:"))
        header = line["requestHeader"]
        taken = now - line["totalTimeMs"] + line["requestQueueTimeMs"]
        seen = Observed(
            id=match[1],
            broker="",
            api=header["requestApiKeyName"],
            api_version=header["requestApiVersion"],
            client_id=header["clientId"],
            connection=line["connection"],
            earliest_ms=taken,
            at_ms=taken + line["localTimeMs"] / 2,
            latest_ms=now,
            answered_ms=now,
            request=line["request"],
            response=line["response"],
        )
        recorded = Recorded(line, f"{match[4]} {match[5]}", taken, seen)
        self._push(seen.at_ms, recorded.group, recorded)

    def _push(self, at_ms: float, group: str, item: Any) -> None:
        self.count += 1
        heapq.heappush(self.queue, (at_ms, self.count, group, item))

    def _print(self, at_ms: float, text: str) -> None:
        self.printed.append((at_ms, len(self.printed), text))

    def _say(self, at_ms: float, group: str, what: str, **words: object) -> None:
        shard = (
            f"[GroupCoordinator id={self.source.parent.name} topic=__consumer_offsets "
            f"partition={self.partitions[group]}]"
        )
        message = SAYINGS[what].format(group=group, **words)
        self._print(
            at_ms, f"group-coordinator-event-processor-0 INFO {shard} {message} ({MANAGER})"
        )

    def _events(self, group: str, item: Any, at_ms: float) -> Iterator[Event]:
        if isinstance(item, Recorded):
            self.open[item.observed.id] = item
            yield event_of(item.observed, at_ms, self._choices(group, item.observed))
        elif isinstance(item, Timer):
            if self.timers.get((group, item)) == at_ms:
                del self.timers[group, item]
                yield TimerFired(at_ms, item, self._choices(group))
        elif isinstance(item, RecordWritten):
            yield RecordWritten(at_ms, item.request, choices=self._choices(group))
        else:
            yield item

    def _choices(self, group: str, seen: Observed | None = None) -> Choices:
        """Choose as the recorded broker did where it can be known."""
        leader = protocol = new_id = ""
        for recorded in self.open.values():
            if recorded.observed.api == "JOIN_GROUP" and recorded.group == group:
                leader = leader or recorded.body["response"].get("leader", "")
                protocol = protocol or recorded.body["response"].get("protocolName") or ""
        if seen is not None and seen.api == "JOIN_GROUP" and not seen.request["memberId"]:
            prefix = f"{seen.request.get('groupInstanceId') or seen.client_id}-"
            new_id = seen.response.get("memberId") or ""
            if not new_id.startswith(prefix) or new_id in self._group(group).members:
                new_id = f"{prefix}{uuid.uuid5(uuid.NAMESPACE_OID, seen.id)}"
        return Choices(new_id, leader, protocol)

    def _group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group(name, service=Service.ABSENT))

    def _step(self, name: str, event: Event) -> None:
        before = self._group(name)
        after, effects = self.coordinator(before, event, self.profile)
        self.groups[name] = after
        self._say_event(name, before, after, event)
        for effect in effects:
            self._act(name, event, effect)

    def _say_event(self, name: str, before: Group, after: Group, event: Event) -> None:
        """Print what a coordinator says of an event itself, before its consequences."""
        now = event.at_ms
        match event:
            case JoinReceived():
                self._say_join(name, before, after, event)
            case LeaveReceived():
                for member in sorted(before.members.keys() - after.members.keys()):
                    self._say(now, name, "left", member=member)
            case TimerFired(timer=Timer(TimerKind.SESSION, member)):
                if member in before.members and member not in after.members:
                    self._say(now, name, "session_expired", member=member)
                elif member in before.pending_joins and member not in after.pending_joins:
                    self._say(now, name, "pending_expired", member=member)
            case Unloaded():
                self._say(now, name, "group_unloaded", generation=before.generation)

    def _say_join(self, name: str, before: Group, after: Group, event: JoinReceived) -> None:
        now, said = event.at_ms, {"state": before.state}
        match event:
            case JoinReceived(group_instance_id=str(instance), member_id=""):
                known, owner = before.static_ids.get(instance), after.static_ids.get(instance)
                if known is not None and before.state is not State.EMPTY:
                    self._say(now, name, "static_replaced", instance=instance, member=known, **said)
                    if after.state is State.STABLE:
                        self._say(now, name, "static_no_rebalance")
                elif owner is not None:
                    self._say(now, name, "static_added", instance=instance, member=owner, **said)
            case JoinReceived(member_id=""):
                for new in after.pending_joins - before.pending_joins:
                    self._say(now, name, "dynamic_given_id", member=new, **said)
            case JoinReceived(member_id=member) if member in before.pending_joins:
                self._say(now, name, "pending_joins", member=member, **said)

    def _act(self, name: str, event: Event, effect: Effect) -> None:
        now = event.at_ms
        match effect:
            case Answer(request=request, response=response):
                self._answer(request, response, now)
            case Arm(timer=timer, deadline_ms=deadline):
                self.timers[name, timer] = deadline
                self._push(deadline, name, timer)
            case Disarm(timer=timer):
                self.timers.pop((name, timer), None)
            case Persist(request=str(request)):
                self._push(now + WRITE_MS, name, RecordWritten(now, request))
            case AssignmentReceived():
                self._say(
                    now,
                    name,
                    "assignment",
                    member=effect.leader,
                    generation=effect.generation,
                    members=effect.members,
                    static_members=effect.static_members,
                )
            case Transition():
                self._say_transition(name, now, effect)

    def _say_transition(self, name: str, now: float, moved: Transition) -> None:
        what = {
            State.PREPARING_REBALANCE: "preparing",
            State.COMPLETING_REBALANCE: "stabilized",
            State.EMPTY: "empty",
        }.get(moved.after)
        if what is None:
            return
        static_ids = self.groups[name].static_ids
        instance = next((i for i, m in static_ids.items() if m == moved.member_id), "null")
        reason = REASONS[moved.reason or Reason.LEAVE].format(
            member=moved.member_id, instance=instance
        )
        self._say(
            now, name, what, generation=moved.generation, members=moved.members, reason=reason
        )

    def _answer(self, request: str, response: Response, now: float) -> None:
        """Print a request's line as of the moment its answer is sent."""
        recorded = self.open.pop(request)
        line = dict(recorded.body)
        remote = max(0.0, now - recorded.taken_ms - line["localTimeMs"])
        total = line["requestQueueTimeMs"] + line["localTimeMs"] + remote + 0.15
        line |= {
            "response": body(response, recorded.observed),
            "remoteTimeMs": round(remote, 3),
            "responseQueueTimeMs": 0.05,
            "sendTimeMs": 0.1,
            "totalTimeMs": round(total, 3),
        }
        sent = recorded.taken_ms - line["requestQueueTimeMs"] + total
        text = json.dumps(line, separators=(",", ":"))
        self._print(sent, f"{recorded.thread} Completed request:{text} (kafka.request.logger)")
