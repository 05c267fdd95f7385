"""What shows that a fault on the wire is in force: probes through the tap, and both logs.

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
from typing import Any, Protocol

from chaos.clusters import GROUP_LOG, BrokerInfo
from chaos.errors import ChaosError
from chaos.faults.broker_probe import Question
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding, grouped
from chaos.journal import now_ms
from chaos.tap import Rule, RunningTap
from chaos.witness import Witness
from kafka_protocol.log_line import written_ms

BACK_WITHIN_MS = 30_000
_TRIES = 3
"""How often a busy machine may answer another client as late as one that is delayed."""
LOGGED_WITHIN_MS = 5_000
"""How long a broker may take to write the line of a request that it has answered."""
_PASSES_S = 10.0
"""How long the tap and a broker may take for a request that no rule hits."""
_OUTSIDER = "groupquake-probe"
_EARLIER_MS = 2_000
"""How much the clock of a broker behind a NAT may be behind this one."""
_CONNECTION = re.compile(r'connection"?[:= ]"?(\S+:\d+-\S+:\d+)-\d')
_ENDS = re.compile(r"(.+:\d+-.+:\d+)(?:-\d+)+$")


class WireEvidence(Protocol):
    """The witness of one rule."""

    def begin(self, rule_id: str) -> None:
        """Take note that the rule is in force."""

    def broken(self) -> Finding:
        """Return whether the rule has its effect, while it should."""

    def healed(self, stop: threading.Event) -> Finding:
        """Wait until its effect is over."""


def api_versions(client_id: str) -> bytes:
    """Return an ApiVersions request v0: any broker answers it, before a login, too."""
    name = client_id.encode()
    return struct.pack(">ihhih", 10 + len(name), 18, 0, 1, len(name)) + name


@dataclass(slots=True)
class Probes:
    """Questions through the tap, in the name of a member."""

    tap: RunningTap
    client_id: str
    brokers: tuple[int, ...]

    def ask(self, broker: int, client_id: str | None = None) -> Question:
        """Send a request to a broker through the tap. Raises ChaosError if nothing listens."""
        address = self.tap.listeners[broker]
        host, _, port = address.rpartition(":")
        listener = BrokerInfo(broker, int(port), self.tap.folder, self.tap.folder, host)
        try:
            return Question(listener, api_versions(client_id or self.client_id))
        except OSError as error:
            raise ChaosError(f"the tap takes no connections at {address} ({error})") from error

    def outsider_passes(self, broker: int) -> bool:
        """Return whether a request of a client that no rule selects is answered."""
        return self.timed(broker, _PASSES_S, _OUTSIDER) is not None

    def timed(self, broker: int, within_s: float, client_id: str | None = None) -> float | None:
        """Return how long a broker takes to answer, in ms; None if it does not."""
        began = time.monotonic()
        question = self.ask(broker, client_id)
        try:
            answered = question.reply(within_s)
        finally:
            question.close()
        return (time.monotonic() - began) * 1000 if answered else None

    def member_was_hit(self, rule_id: str, asked: int) -> str | None:
        """Return how many requests of the member itself a rule has hit, as part of a sentence.

        `asked` is how many it has hit of the probes, which carry the member's name: they would pass
        for a member that does not. None if there are no others.
        """
        own = self.tap.counters()["rules"].get(rule_id, 0) - asked
        return f"{own} of its own requests were hit" if own > 0 else None

    def unknown_member(self) -> str:
        """Return what is said where no request of the member was hit."""
        return (
            f"no request of {self.client_id} itself was hit: it sent none, or its client.id is"
            " another"
        )


@dataclass(slots=True)
class Silence:
    """A request that gets no answer while the rule is in force, and one afterwards."""

    probes: Probes
    _rule: str = ""
    _asked: dict[int, Question] = field(default_factory=dict)

    def begin(self, rule_id: str) -> None:
        """Send one request to each broker."""
        self._rule = rule_id
        self._asked = {broker: self.probes.ask(broker) for broker in self.probes.brokers}

    def broken(self) -> Finding:
        """Return whether none is answered though others pass, nor what the member itself sent."""
        for broker, question in self._asked.items():
            what = f"ApiVersions of {self.probes.client_id} through the tap to broker {broker}"
            reply = question.reply()
            if reply is None:
                if not self.probes.outsider_passes(broker):
                    return Finding(False, f"{what} had no answer, nor had that of another client")
                reply = question.reply()  # it was sent before the other client's
            if reply is not None:
                return Finding(False, f"{what} was {'answered' if reply else 'ended'}")
        hit = self.probes.member_was_hit(self._rule, len(self._asked))
        if hit is None:
            return Finding(False, self.probes.unknown_member())
        waited = grouped(min(question.age_ms() for question in self._asked.values()))
        to = ", ".join(map(str, self._asked))
        return Finding(
            True,
            f"ApiVersions of {self.probes.client_id} through the tap had no answer of broker {to}"
            f" for {waited} ms, and another client's had; {hit}",
        )

    def healed(self, stop: threading.Event) -> Finding:
        """Wait until each is answered."""
        return await_finding(self._all_answered, BACK_WITHIN_MS, "not all were answered", stop)

    def _all_answered(self) -> Finding | None:
        for broker, question in list(self._asked.items()):
            reply = question.reply()
            if reply is None:
                return None
            question.close()
            if reply:
                del self._asked[broker]
            else:  # the broker went away meanwhile
                self._asked[broker] = self.probes.ask(broker)
                return None
        return Finding(True, "all were answered")


@dataclass(slots=True)
class Slowness:
    """A request that takes at least so long while the rule is in force, and another's does not."""

    probes: Probes
    least_ms: float
    most_ms: float
    _rule: str = ""

    def begin(self, rule_id: str) -> None:
        """Nothing shows before a request is sent."""
        self._rule = rule_id

    def broken(self) -> Finding:
        """Send one to each broker, and return whether each takes its time for the member alone."""
        shown = []
        for broker in self.probes.brokers:
            shown.append(self._took(broker))
            if not shown[-1].holds:
                return shown[-1]
        hit = self.probes.member_was_hit(self._rule, len(self.probes.brokers))
        if hit is None:
            return Finding(False, self.probes.unknown_member())
        return Finding(True, f"{', '.join(finding.evidence for finding in shown)}; {hit}")

    def _took(self, broker: int) -> Finding:
        """Return whether a broker took its time, and half of it at most for another client.

        A machine that is so busy that it takes as long for anybody shows nothing.
        """
        what = f"ApiVersions of {self.probes.client_id} through the tap"
        took_ms = self.probes.timed(broker, self.most_ms / 1000 + _PASSES_S)
        if took_ms is None:
            return Finding(False, f"{what} was not answered by broker {broker}")
        what = f"{what} took broker {broker} {grouped(round(took_ms))} ms"
        if took_ms < self.least_ms:
            return Finding(False, what)
        others = (self.probes.timed(broker, _PASSES_S, _OUTSIDER) for _ in range(_TRIES))
        for other_ms in others:
            if other_ms is not None and other_ms < self.least_ms / 2:
                return Finding(True, f"{what}, and another client's {grouped(round(other_ms))} ms")
        return Finding(False, f"{what}, but so did that of another client")

    def healed(self, stop: threading.Event) -> Finding:
        """Wait until one is answered."""
        return await_finding(self._answered, BACK_WITHIN_MS, "none was answered", stop)

    def _answered(self) -> Finding | None:
        question = self.probes.ask(self.probes.brokers[0])
        try:
            answered = question.reply(_PASSES_S)
        finally:
            question.close()
        return Finding(True, "one was answered") if answered else None


@dataclass(slots=True)
class Logs:
    """The lines about requests that a rule has hit, in the tap's logs and in the brokers' own."""

    tap: RunningTap
    brokers: Mapping[int, Path]

    def hit(self, rule_id: str, **shown: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the lines of the tap, by broker, that name the rule and tell this."""
        for log in sorted(self.tap.folder.glob("*/group.log")):
            with log.open(errors="replace") as lines:  # a log of hours is larger than memory
                for line in lines:
                    if f'"{rule_id}"' not in line or '"tap":{' not in line or line[-1] != "\n":
                        continue  # of no interest, or not written wholly yet
                    body = line[line.index("request:") + len("request:") : line.rindex(" (")]
                    content = json.loads(body)
                    tap = content.get("tap", {})
                    if rule_id in tap.get("rules", ()) and shown.items() <= tap.items():
                        yield int(log.parent.name), content

    def times_logged(self, broker: int, content: Mapping[str, Any], since_ms: float) -> int | None:
        """Return how often the broker's own log has a request of the tap's; None without a log.

        It is known by its number and the addresses of its connection. Behind a NAT, as of brokers
        in containers, the log has none of the tap's addresses: then by its number, client and API,
        on any one connection, from `since_ms` on.
        """
        log = self.brokers.get(broker)
        if log is None or not log.exists() or log.is_relative_to(self.tap.folder):
            return None
        header = content["requestHeader"]
        serial, client = header["correlationId"], header.get("clientId")
        numbers = (f'"correlationId":{serial},', f"correlationId={serial})")
        names = (f'"clientId":{json.dumps(client)}', f"clientId={client},")
        api = re.compile(rf'"requestApiKeyName":"{header["requestApiKeyName"]}"'
                         rf"|apiKey={header['requestApiKeyName']},")  # fmt: skip
        tapped = set(_addresses(self.tap.folder / str(broker) / GROUP_LOG))
        at_ends: Counter[str] = Counter()
        by_name: Counter[str] = Counter()
        is_behind_nat = True
        with log.open(errors="replace") as lines:
            for line in lines:
                ends = _address(line)
                is_behind_nat = is_behind_nat and ends not in tapped
                if ends is None or not any(number in line for number in numbers):
                    continue
                at_ends[ends] += 1
                named = any(name in line for name in names) and api.search(line)
                if named and written_ms(line) >= since_ms:
                    by_name[ends] += 1
        if is_behind_nat:
            return max(by_name.values(), default=0)
        return at_ends[_ENDS.match(content["connection"])[1]]  # type: ignore[index]


def _address(line: str) -> str | None:
    """Return both addresses of the connection that a line of a request names."""
    found = _CONNECTION.search(line)
    return found[1] if found else None


def _addresses(log: Path) -> Iterator[str]:
    """Yield those of all lines of a log."""
    with log.open(errors="replace") as lines:
        yield from filter(None, map(_address, lines))


@dataclass(slots=True)
class Twice:
    """What a rule did to single requests: their answers were dropped, or they arrived again."""

    logs: Logs
    shown: Mapping[str, Any]
    least: int
    stop: threading.Event
    _rule: str = ""
    _began_ms: int = 0

    def begin(self, rule_id: str) -> None:
        """Remember whose lines to look for, and since when."""
        self._rule, self._began_ms = rule_id, now_ms() - _EARLIER_MS

    def broken(self) -> Finding:
        """Return whether the brokers have each request that was hit as often as they should."""
        return await_finding(
            self._look, LOGGED_WITHIN_MS, "the broker's own log lacks some that were hit", self.stop
        )

    def _look(self) -> Finding | None:
        hit = list(self.logs.hit(self._rule, **self.shown))
        if not hit:
            return Finding(False, f"the tap wrote of no request that {self._rule} hit")
        counts = [
            self.logs.times_logged(broker, content, self._began_ms) for broker, content in hit
        ]
        if any(count is not None and count < self.least for count in counts):
            return None
        broker, content = hit[0]
        header = content["requestHeader"]
        what = (
            f"{len(hit)} hit, the first {header['requestApiKeyName']} {header['correlationId']}"
            f" to broker {broker}"
        )
        if None in counts:
            return Finding(True, f"{what}, as the tap wrote (the broker has no log here)")
        arrived = "twice" if self.least > 1 else "with its answer"
        return Finding(True, f"{what}, which its own log has {arrived}")

    def healed(self, _: threading.Event) -> Finding:
        """Return that nothing lasts: single requests were hit."""
        return Finding(True, "no further request is hit")


@dataclass(slots=True)
class Held:
    """Requests that the tap has, and that the brokers do not get."""

    logs: Logs
    witness: Witness
    member: str
    apis: tuple[str, ...]
    _rule: str = ""
    _began_ms: int = 0
    _ended_ms: int = 0

    def begin(self, rule_id: str) -> None:
        """Remember since when."""
        self._rule, self._began_ms = rule_id, now_ms()

    def broken(self) -> Finding:
        """Return whether some wait, and none arrived."""
        self._ended_ms = now_ms()
        held = self.logs.tap.counters()["rules"].get(self._rule, 0)
        if not held:
            return Finding(False, f"{self.member} sent no {', '.join(self.apis)}")
        if came := self._arrived(self._began_ms):
            return Finding(False, f"{held} held, but {came}")
        return Finding(True, f"{held} {', '.join(self.apis)} of {self.member} held, none arrived")

    def healed(self, stop: threading.Event) -> Finding:
        """Wait until one arrives, or its connection has ended."""
        return await_finding(self._let_go, BACK_WITHIN_MS, "none arrived", stop)

    def _let_go(self) -> Finding | None:
        if came := self._arrived(self._ended_ms):
            return Finding(True, came)
        if any(True for _ in self.logs.hit(self._rule)):
            return Finding(True, "the tap wrote what became of it")
        return None

    def _arrived(self, since_ms: int) -> str | None:
        self.witness.poll()
        for api in self.apis:
            if found := self.witness.arrived_since(self.member, api, since_ms):
                return f"{api} arrived ({found.place})"
        return None


def evidence_of(
    rule: Rule,
    member: str,
    tap: RunningTap,
    logs: Mapping[int, Path],
    witness: Witness,
    stop: threading.Event,
) -> WireEvidence:
    """Return the witness for a rule on a member's requests; `stop` ends its waits."""
    probes = Probes(tap, member, rule.brokers or tuple(tap.listeners))
    match rule.action:
        case "partition":
            return Silence(probes)
        case "delay":
            ways = 2 if rule.way == "both" else 1
            least_ms = ways * max(0.0, rule.latency_ms - rule.jitter_ms)
            return Slowness(probes, least_ms, ways * (rule.latency_ms + rule.jitter_ms))
        case "drop-answers":
            return Twice(Logs(tap, logs), {"delivered": False, "why": "dropped"}, 1, stop)
        case "duplicate":
            return Twice(Logs(tap, logs), {"copy": True}, 2, stop)
        case "hold":
            return Held(Logs(tap, logs), witness, member, rule.apis or ())
