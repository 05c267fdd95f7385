"""Rules of the tap, and what shows that each is in force: probes through the tap, and both logs.

The tap's rule table is the injector. Witnesses are: answers that a connection of the runner's own
gets through the tap, or does not; the brokers' own logs; and the lines in which the tap's
connections write what they delivered.
"""

import json
import re
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos import timing
from chaos.broker_probe import Question
from chaos.clusters import GROUP_LOG, BrokerInfo
from chaos.errors import ChaosError
from chaos.tap import Rule, RunningTap
from chaos.witness import Witness
from kafka_protocol.log_line import written_ms
from scenarios.durations import now_ms
from scenarios.faults.finding import Finding, await_finding, grouped

_OUTSIDER = "groupquake-probe"
_CONNECTION = re.compile(r'connection"?[:= ]"?(\S+:\d+-\S+:\d+)-\d')
_ENDS = re.compile(r"(.+:\d+-.+:\d+)(?:-\d+)+$")

Line = Mapping[str, Any]


@dataclass(slots=True)
class WireRule:
    """A rule of the tap for what one member sends and gets.

    `logs` are the brokers' own, by their ids; `stop` ends every wait.
    """

    tap: RunningTap
    rule: Rule
    member: str
    logs: Mapping[int, Path]
    witness: Witness
    stop: threading.Event
    id: str = ""
    """How the tap's lines name it, once it was to be in force."""
    began_ms: int = 0

    def put(self) -> str:
        """Put the rule in force; return its id."""
        self.id = self.tap.new_id()  # known also if the tap's answer does not come
        self.tap.add(self.id, self.rule)
        self.begin()
        return self.id

    def begin(self) -> None:
        """Take note that it is in force."""
        self.began_ms = now_ms()

    def broken(self) -> Finding:
        """Return whether it has its effect, while it should."""
        raise NotImplementedError

    def remove(self) -> str:
        """Remove the rule, and return how; what it held passes."""
        if not self.id:
            return "the rule was never in force"
        return f"rule {self.id} removed, which hit {self.tap.remove(self.id)} requests"

    def healed(self) -> Finding:
        """Wait until its effect is over."""
        raise NotImplementedError

    # Probes: requests through the tap, in the name of the member or of somebody else

    @property
    def probed(self) -> tuple[int, ...]:
        """The brokers that are asked."""
        return self.rule.brokers or tuple(self.tap.listeners)

    def ask(self, broker: int, client_id: str) -> Question:
        """Send a request to a broker through the tap. Raises ChaosError if nothing listens."""
        address = self.tap.listeners[broker]
        host, _, port = address.rpartition(":")
        listener = BrokerInfo(broker, int(port), self.tap.folder, self.tap.folder, host)
        try:
            return Question(listener, api_versions(client_id))
        except OSError as error:
            raise ChaosError(f"the tap takes no connections at {address} ({error})") from error

    def timed_ms(self, broker: int, within_s: float, client_id: str = _OUTSIDER) -> float | None:
        """Return how long a broker takes to answer; None if it does not."""
        began = time.monotonic()
        question = self.ask(broker, client_id)
        try:
            answered = question.reply(within_s)
        finally:
            question.close()
        return (time.monotonic() - began) * 1000 if answered else None

    def shown_for_member(self, evidence: str, asked: int) -> Finding:
        """Return what probes showed, which counts if the member's own requests were hit, too.

        `asked` is how many probes were hit, which carry the member's name: they would pass for a
        member that does not.
        """
        own = self.hits() - asked
        if own > 0:
            return Finding(True, f"{evidence}; {own} of its own requests were hit")
        return Finding(
            False,
            f"no request of {self.member} itself was hit: it sent none, or its client.id is"
            " another",
        )

    def hits(self) -> int:
        """Return how many requests it has hit so far."""
        counted: int = self.tap.hits().get(self.id, 0)
        return counted


def api_versions(client_id: str) -> bytes:
    """Return an ApiVersions request v0: any broker answers it, before a login, too."""
    name = client_id.encode()
    return struct.pack(">ihhih", 10 + len(name), 18, 0, 1, len(name)) + name


@dataclass(slots=True)
class Partition(WireRule):
    """A request gets no answer while the rule is in force, and one afterwards."""

    _asked: dict[int, Question] = field(default_factory=dict)

    def begin(self) -> None:
        """Send one request to each broker."""
        self._asked = {broker: self.ask(broker, self.member) for broker in self.probed}

    def broken(self) -> Finding:
        """Return whether none is answered though others pass, nor what the member itself sent."""
        for broker, question in self._asked.items():
            what = f"ApiVersions of {self.member} through the tap to broker {broker}"
            reply = question.reply()
            if reply is None:
                if self.timed_ms(broker, timing.WIRE_PASSES_S) is None:
                    return Finding(False, f"{what} had no answer, nor had that of another client")
                reply = question.reply()  # it was sent before the other client's
            if reply is not None:
                return Finding(False, f"{what} was {'answered' if reply else 'ended'}")
        waited = grouped(min(question.age_ms() for question in self._asked.values()))
        to = ", ".join(map(str, self._asked))
        return self.shown_for_member(
            f"ApiVersions of {self.member} through the tap had no answer of broker {to}"
            f" for {waited} ms, and another client's had",
            len(self._asked),
        )

    def healed(self) -> Finding:
        """Wait until each is answered."""
        missing = "not all were answered"
        return await_finding(self._all_answered, timing.WIRE_BACK_MS, missing, self.stop)

    def _all_answered(self) -> Finding | None:
        for broker, question in list(self._asked.items()):
            reply = question.reply()
            if reply is None:
                return None
            question.close()
            if not reply:  # the broker went away meanwhile
                self._asked[broker] = self.ask(broker, self.member)
                return None
            del self._asked[broker]
        return Finding(True, "all were answered")


@dataclass(slots=True)
class Delay(WireRule):
    """A request takes at least so long while the rule is in force, and another's does not."""

    @property
    def bounds_ms(self) -> tuple[float, float]:
        """How long a request takes at least and at most."""
        ways = 2 if self.rule.way == "both" else 1
        latency_ms, jitter_ms = self.rule.latency_ms, self.rule.jitter_ms
        return ways * max(0.0, latency_ms - jitter_ms), ways * (latency_ms + jitter_ms)

    def broken(self) -> Finding:
        """Send one to each broker, and return whether each takes its time for the member alone."""
        shown = []
        for broker in self.probed:
            shown.append(self._took(broker))
            if not shown[-1].holds:
                return shown[-1]
        return self.shown_for_member(", ".join(one.evidence for one in shown), len(shown))

    def _took(self, broker: int) -> Finding:
        """Return whether a broker took its time, and half of it at most for another client.

        A machine that is so busy that it takes as long for anybody shows nothing.
        """
        least_ms, most_ms = self.bounds_ms
        what = f"ApiVersions of {self.member} through the tap"
        took_ms = self.timed_ms(broker, most_ms / 1000 + timing.WIRE_PASSES_S, self.member)
        if took_ms is None:
            return Finding(False, f"{what} was not answered by broker {broker}")
        what = f"{what} took broker {broker} {grouped(round(took_ms))} ms"
        if took_ms < least_ms:
            return Finding(False, what)
        for _ in range(timing.WIRE_TRIES):
            other_ms = self.timed_ms(broker, timing.WIRE_PASSES_S)
            if other_ms is not None and other_ms < least_ms / 2:
                return Finding(True, f"{what}, and another client's {grouped(round(other_ms))} ms")
        return Finding(False, f"{what}, but so did that of another client")

    def healed(self) -> Finding:
        """Wait until one is answered."""
        return await_finding(self._answered, timing.WIRE_BACK_MS, "none was answered", self.stop)

    def _answered(self) -> Finding | None:
        answered = self.timed_ms(self.probed[0], timing.WIRE_PASSES_S, self.member)
        return None if answered is None else Finding(True, "one was answered")


@dataclass(slots=True)
class Single(WireRule):
    """The rule hits single requests: their answers are dropped, or they arrive again."""

    def broken(self) -> Finding:
        """Return whether the brokers have each request that was hit as often as they should."""
        missing = "the broker's own log lacks some that were hit"
        return await_finding(self._look, timing.WIRE_LOGGED_MS, missing, self.stop)

    def _look(self) -> Finding | None:
        twice = self.rule.action == "duplicate"
        shown = {"copy": True} if twice else {"delivered": False, "why": "dropped"}
        hit = list(hit_lines(self.tap.folder, self.id, shown))
        if not hit:
            return Finding(False, f"the tap wrote of no request that {self.id} hit")
        since_ms = self.began_ms - timing.NAT_CLOCK_MS
        counts = [
            times_logged(self.logs.get(broker), self.tap.folder / str(broker), line, since_ms)
            for broker, line in hit
        ]
        if any(count is not None and count < 1 + twice for count in counts):
            return None
        broker, line = hit[0]
        header = line["requestHeader"]
        what = (
            f"{len(hit)} hit, the first {header['requestApiKeyName']} {header['correlationId']}"
            f" to broker {broker}"
        )
        if None in counts:
            return Finding(True, f"{what}, as the tap wrote (the broker has no log here)")
        arrived = "twice" if twice else "with its answer"
        return Finding(True, f"{what}, which its own log has {arrived}")

    def healed(self) -> Finding:
        """Return that nothing lasts: single requests were hit."""
        return Finding(True, "no further request is hit")


@dataclass(slots=True)
class Hold(WireRule):
    """The tap has requests that the brokers do not get."""

    _ended_ms: int = 0

    def broken(self) -> Finding:
        """Return whether some wait, and none arrived."""
        self._ended_ms = now_ms()
        held, apis = self.hits(), ", ".join(self.rule.apis or ())
        if not held:
            return Finding(False, f"{self.member} sent no {apis}")
        if came := self._arrived(self.began_ms):
            return Finding(False, f"{held} held, but {came}")
        return Finding(True, f"{held} {apis} of {self.member} held, none arrived")

    def healed(self) -> Finding:
        """Wait until one arrives, or its connection has ended."""
        return await_finding(self._let_go, timing.WIRE_BACK_MS, "none arrived", self.stop)

    def _let_go(self) -> Finding | None:
        if came := self._arrived(self._ended_ms):
            return Finding(True, came)
        if any(True for _ in hit_lines(self.tap.folder, self.id, {})):
            return Finding(True, "the tap wrote what became of it")
        return None

    def _arrived(self, since_ms: int) -> str | None:
        self.witness.poll()
        for api in self.rule.apis or ():
            if found := self.witness.latest(self.member, since_ms, api):
                return f"{api} arrived ({found.place})"
        return None


RULES: Mapping[str, type[WireRule]] = {
    "partition": Partition,
    "delay": Delay,
    "drop-answers": Single,
    "duplicate": Single,
    "hold": Hold,
}
"""The witness of each action of the tap."""


def hit_lines(folder: Path, rule_id: str, shown: Mapping[str, Any]) -> Iterator[tuple[int, Line]]:
    """Yield the lines of the tap, by broker, that name a rule and tell this."""
    for log in sorted(folder.glob("*/group.log")):
        with log.open(errors="replace") as lines:  # a log of hours is larger than memory
            for line in lines:
                if f'"{rule_id}"' not in line or '"tap":{' not in line or line[-1] != "\n":
                    continue  # of no interest, or not written wholly yet
                body = line[line.index("request:") + len("request:") : line.rindex(" (")]
                content = json.loads(body)
                tap = content.get("tap", {})
                if rule_id in tap.get("rules", ()) and shown.items() <= tap.items():
                    yield int(log.parent.name), content


def times_logged(log: Path | None, tapped: Path, hit: Line, since_ms: float) -> int | None:
    """Return how often a broker's own log has a request of the tap's; None without a log.

    It is known by its number and the addresses of its connection. Behind a NAT, as of brokers in
    containers, the log has none of the tap's addresses, which stand in the folder `tapped`: then by
    its number, client and API, on any one connection, from `since_ms` on.
    """
    if log is None or not log.exists() or log.is_relative_to(tapped.parent):
        return None
    header = hit["requestHeader"]
    serial, client = header["correlationId"], header.get("clientId")
    numbers = (f'"correlationId":{serial},', f"correlationId={serial})")
    names = (f'"clientId":{json.dumps(client)}', f"clientId={client},")
    api = re.compile(rf'"requestApiKeyName":"{header["requestApiKeyName"]}"'
                     rf"|apiKey={header['requestApiKeyName']},")  # fmt: skip
    addresses = set(filter(None, map(_address, _lines(tapped / GROUP_LOG))))
    at_ends: Counter[str] = Counter()
    by_name: Counter[str] = Counter()
    is_behind_nat = True
    for line in _lines(log):
        ends = _address(line)
        is_behind_nat = is_behind_nat and ends not in addresses
        if ends is None or not any(number in line for number in numbers):
            continue
        at_ends[ends] += 1
        named = any(name in line for name in names) and api.search(line)
        if named and written_ms(line) >= since_ms:
            by_name[ends] += 1
    if is_behind_nat:
        return max(by_name.values(), default=0)
    return at_ends[_ENDS.match(hit["connection"])[1]]  # type: ignore[index]


def _lines(log: Path) -> Iterator[str]:
    with log.open(errors="replace") as lines:
        yield from lines


def _address(line: str) -> str | None:
    """Return both addresses of the connection that a line of a request names."""
    found = _CONNECTION.search(line)
    return found[1] if found else None
