"""What the growing files of a run say: memberships, rebalances, owners, faults, phases.

Rebalances come from coordinator lines: the templates of `_LINES`. A membership begins with the
answer of a JoinGroup in the request log and ends with an event of the client history, or with its
session. Without a request log it begins with the assignment that the client saw. Lines that match
nothing are skipped: the analysis judges all lines.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from chaos.tail import Tail
from kafka_protocol.coordinator_lines import ALL_GRAMMARS, finder_of
from kafka_protocol.coordinator_lines.member_ids import client_of, without_ids
from kafka_protocol.errors import NO_ERROR
from kafka_protocol.log_line import written_ms
from kafka_protocol.request_log import COMPLETED, parsed
from reports.page.drawn_groups import Membership

LOGS = ("brokers/*/group.log", "tap/*/group.log")
"""The logs of brokers, and those that the tap writes for them, in a run folder."""
_LINES = finder_of(
    "preparing", "stabilized", "assignment", "empty", "session_expired", "group_loaded"
)  # fmt: skip
_JOINS = "JOIN_GROUP"

Timed = tuple[float, Callable[[], None]]
"""When a line was written, in UTC epoch milliseconds, and a function that takes what it says."""


@dataclass(slots=True)
class Rebalance:
    """A rebalance that a coordinator began; `generation` is the new one, None until it stands.

    `client` began it, and was in the group until `since_ms`; `is_first` if it never was before.
    `ended_ms` is when the leader's assignment came, or the group was empty.
    """

    group: str
    at_ms: float
    old_generation: int
    reason: str
    reason_class: str
    member_id: str
    client: str
    since_ms: float
    is_first: bool
    generation: int | None = None
    members: int | None = None
    joined_ms: float | None = None
    ended_ms: float | None = None


@dataclass(slots=True)
class GroupFacts:
    """What is known of one group; times are UTC epoch milliseconds."""

    generation: int | None = None
    members: int | None = None
    coordinators: list[dict[str, Any]] = field(default_factory=list)
    """Who coordinated it from when until when, as `CoordinatorEpochs.coordinated` has it."""
    rebalances: list[Rebalance] = field(default_factory=list)
    ended: list[Membership] = field(default_factory=list)
    open: dict[str, Membership] = field(default_factory=dict)
    """The memberships that go on, by client; they have no end yet."""
    fenced: set[str] = field(default_factory=set)
    """Clients of whose instance id another one has taken."""
    left_ms: dict[str, float] = field(default_factory=dict)
    """When memberships ended, by member id, and by client until it is back."""
    owners: dict[str, set[str]] = field(default_factory=partial(defaultdict, set))
    unowned: dict[str, float] = field(default_factory=dict)
    """Since when partitions that had an owner have none."""
    stopped: dict[str, float] = field(default_factory=dict)
    """Since when members have given up all they owned."""
    unowned_ms: float = 0.0
    stopped_ms: float = 0.0
    """How long partitions had no owner and members were stopped, by ends in the impact phase."""
    commit_errors: int = 0
    position: dict[str, int] = field(default_factory=dict)
    """The offset after the last record that the group processed, by partition."""
    has_joins: bool = False
    """Whether a request log has its JoinGroups."""

    def begin(self, client: str, member_id: str, generation: int, at_ms: float) -> None:
        """Note that a client is in a generation from now on."""
        self._end(client, at_ms)
        self.left_ms.pop(client, None)
        self.open[client] = Membership(client, member_id, generation, at_ms, at_ms)

    def leave(self, client: str, at_ms: float) -> None:
        """Note that a client is in the group no more."""
        if (member_id := self._end(client, at_ms)) is not None:
            self.left_ms |= {client: at_ms, member_id: at_ms}

    def _end(self, client: str, at_ms: float) -> str | None:
        if (known := self.open.pop(client, None)) is None:
            return None
        self.ended.append(known._replace(end_ms=at_ms))
        return known.member_id

    @property
    def coordinator(self) -> str | None:
        """The broker that coordinates it, as far as is known."""
        return self.coordinators[-1]["broker"] if self.coordinators else None

    def coordinate(self, broker: str, at_ms: float) -> None:
        """Note that a broker coordinates it."""
        if broker != self.coordinator:
            if self.coordinators:
                self.coordinators[-1]["until_ms"] = at_ms
            began = {"broker": broker, "since_ms": at_ms, "until_ms": None}
            self.coordinators.append(began)

    def give_up(self, member: str, partitions: set[str], at_ms: float) -> None:
        """Note that a member does not own these partitions any more."""
        given_up = partitions & self.owners[member]
        self.owners[member] -= given_up
        # who takes an instance id owns its partitions before the fenced member gives them up
        owned = set().union(*self.owners.values())
        self.unowned |= dict.fromkeys(given_up - owned, at_ms)

    def live(self, member: str, event: str, at_ms: float) -> None:
        """Note that a member's consumer began or ended, by an event of the client history."""
        self.stopped.pop(member, None)
        if event == "fenced":
            self.fenced.add(member)
        elif event == "created":
            self.fenced.discard(member)
        if event != "closing":
            self.give_up(member, set(self.owners[member]), at_ms)
            self.leave(member, at_ms)

    def get(self, member: str, partitions: set[str], at_ms: float, *, counts: bool) -> None:
        """Note that a member owns these partitions too; the time without owners may count."""
        since = [self.unowned.pop(one) for one in partitions if one in self.unowned]
        stopped_ms = at_ms - self.stopped.pop(member, at_ms)
        self.owners[member] |= partitions
        if counts:
            self.unowned_ms += sum(at_ms - one for one in since)
            self.stopped_ms += stopped_ms


class Facts:
    """Follows the logs, the history and the journal of a run folder; files may appear later.

    Lines about other groups than those named are skipped: the cluster may have them.
    """

    def __init__(self, folder: Path, groups: Iterable[str]) -> None:
        """Start at the first lines."""
        self.groups = {name: GroupFacts() for name in groups}
        self.rebalances: list[Rebalance] = []
        """Those of all groups, in the order of their begins."""
        self.journal: list[dict[str, Any]] = []
        self.phases: list[tuple[str, float]] = []
        self.produced: Counter[str] = Counter()
        """How many records brokers acknowledged, by producer."""
        self._folder = folder
        self._tails: dict[Path, Tail] = {}

    @property
    def phase(self) -> str:
        """The phase that goes on, or nothing before the first."""
        return self.phases[-1][0] if self.phases else ""

    def read(self) -> None:
        """Note what was appended to all files, in the order of time."""
        history = self._noted("history.jsonl", self._event)
        self._take([*self._from_logs(), *history, *self._noted("journal.jsonl", self._entry)])

    def read_logs(self) -> None:
        """Note what was appended to the logs alone, which is less work."""
        self._take([*self._from_logs()])

    def _take(self, found: list[Timed]) -> None:
        for _, take in sorted(found, key=itemgetter(0)):
            take()

    def _from_logs(self) -> Iterator[Timed]:
        logs = (log for names in LOGS for log in self._folder.glob(names))
        return (one for log in logs for one in self._logged(log))

    def _appended(self, path: Path) -> Iterator[str]:
        return self._tails.setdefault(path, Tail(path)).appended()

    def _logged(self, log: Path) -> Iterator[Timed]:
        broker = log.parent.name
        for line in self._appended(log):
            is_request = COMPLETED in line
            if is_request and _JOINS not in line:
                continue
            try:
                if is_request:
                    at_ms, body = written_ms(line), line[line.index(COMPLETED) : line.rindex(" (")]
                    yield at_ms, partial(self._join, at_ms, parsed(body))
                elif found := _LINES.find(line):
                    at_ms = written_ms(line)
                    yield at_ms, partial(self._line, at_ms, broker, *found)
            except (ValueError, RecursionError):
                continue

    def _join(self, at_ms: float, content: Mapping[str, Any]) -> None:
        header, request, response = (content[n] for n in ("requestHeader", "request", "response"))
        group = self.groups.get(request["groupId"])
        if group is not None and response["errorCode"] == NO_ERROR:
            group.has_joins = True
            client = header["clientId"] or client_of(response["memberId"])
            group.begin(client, response["memberId"], response["generationId"], at_ms)

    def _line(self, at_ms: float, broker: str, name: str, fields: Mapping[str, str]) -> None:
        if (group := self.groups.get(fields["group"])) is None:
            return
        group.coordinate(broker, at_ms)
        last = group.rebalances[-1] if group.rebalances else None
        if name == "preparing":
            begun = _begun(fields, at_ms, group)
            group.rebalances.append(begun)
            self.rebalances.append(begun)
        elif name == "session_expired":
            for client, known in [*group.open.items()]:
                if known.member_id == fields["member"]:
                    group.leave(client, at_ms)
            group.left_ms.setdefault(fields["member"], at_ms)
        elif name != "group_loaded":
            group.generation = int(fields["generation"])
            members = "0" if name == "empty" else fields.get("members")
            group.members = group.members if members is None else int(members)
            if last is not None and last.ended_ms is None:
                last.generation, last.members = group.generation, group.members
                last.joined_ms = last.joined_ms or at_ms
                last.ended_ms = None if name == "stabilized" else at_ms

    def _noted(self, file: str, take: Callable[[dict[str, Any]], None]) -> Iterator[Timed]:
        for line in self._appended(self._folder / file):
            entry = json.loads(line)
            yield entry["at_ms"], partial(take, entry)

    def _event(self, event: Mapping[str, Any]) -> None:
        member, at_ms, name = event["member"], event["at_ms"], event["event"]
        if name == "produced":
            self.produced[member] += event["records"]
        if event.get("kind") not in ("static", "dynamic"):
            return
        group = self.groups[event["group"]]
        partitions = set(event.get("partitions", ()))
        match name:
            case "assigned":
                group.get(member, partitions, at_ms, counts=self.phase == "impact")
                if not group.has_joins:
                    group.begin(member, event.get("member_id", ""), group.generation or 0, at_ms)
            case "revoked" | "lost":
                group.give_up(member, partitions, at_ms)
                if partitions and not group.owners[member]:
                    group.stopped.setdefault(member, at_ms)
            case "created" | "closing" | "closed" | "fenced" | "killed":
                group.live(member, name, at_ms)
            case "processed":
                for partition, ranges in event["ranges"].items():
                    group.position[partition] = max(
                        group.position.get(partition, 0), ranges[-1][1] + 1
                    )
            case "error" if event["error"].startswith("commit:"):
                group.commit_errors += 1 + event.get("left_out", 0)

    def _entry(self, entry: dict[str, Any]) -> None:
        self.journal.append(entry)
        if entry["event"] == "phase":
            self.phases.append((entry["phase"], entry["at_ms"]))


def _begun(fields: Mapping[str, str], at_ms: float, group: GroupFacts) -> Rebalance:
    """Return the rebalance that a line says begins, with the member whose act began it."""
    text = fields["reason"]
    classes = (grammar.classed(text) for grammar in ALL_GRAMMARS)
    reason_class = next((found[0] for found in classes if found), "")
    member_id = next(iter(without_ids(text)[1]), "")
    mine = (*group.open.values(), *reversed(group.ended))
    client = next((m.client for m in mine if m.member_id == member_id), client_of(member_id))
    since_ms = group.left_ms.get(member_id, group.left_ms.get(client, at_ms))
    is_first = not any(one.client == client for one in mine)
    of_group = (fields["group"], at_ms, int(fields["generation"]), text, reason_class)
    return Rebalance(*of_group, member_id, client, min(since_ms, at_ms), is_first)
