"""Rules of the tap for what one member sends and gets, and what shows that each is in force.

That is: probes through the tap, the lines of the tap about what a rule hit, and the same in the
brokers' own logs. `scenarios.faults.wire` says what each fault makes of it.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos import timing
from chaos.broker_probe import Question
from chaos.clusters import GROUP_LOG
from chaos.errors import ChaosError
from chaos.tap.process import RunningTap
from chaos.tap.rules import Rule
from kafka_protocol.apis import LOGGED_APIS
from kafka_protocol.log_line import written_ms
from scenarios.durations import now_ms

_OUTSIDER = "groupquake-probe"
_CONNECTION = re.compile(r'connection"?[:= ]"?(\S+:\d+-\S+:\d+)-\d')
_ENDS = re.compile(r"(.+:\d+-.+:\d+)(?:-\d+)+$")

Line = Mapping[str, Any]


@dataclass(slots=True)
class WireRule:
    """A rule of the tap; `logs` are the brokers' own, by their ids."""

    tap: RunningTap
    rule: Rule
    logs: Mapping[int, Path]
    id: str = ""
    """How the tap's lines name it, once it was to be in force."""
    began_ms: int = 0
    """When it was in force."""

    def put(self) -> str:
        """Put the rule in force; return its id."""
        self.id = self.tap.new_id()  # known also if the tap's answer does not come
        self.tap.add(self.id, self.rule)
        self.began_ms = now_ms()
        return self.id

    def remove(self) -> str:
        """Remove the rule, and return how; what it held passes."""
        if not self.id:
            return "the rule was never in force"
        return f"rule {self.id} removed, which hit {self.tap.remove(self.id)} requests"

    def hits(self) -> int:
        """Return how many requests it has hit so far."""
        counted: int = self.tap.hits().get(self.id, 0)
        return counted

    # Probes: requests through the tap, in the name of the member or of somebody else

    @property
    def probed(self) -> tuple[int, ...]:
        """The brokers that are asked."""
        return self.rule.brokers or tuple(self.tap.listeners)

    def ask(self, broker: int, client_id: str) -> Question:
        """Send a request to a broker through the tap. Raises ChaosError if nothing listens."""
        address = self.tap.listeners[broker]
        host, _, port = address.rpartition(":")
        try:
            return Question(host, int(port), client_id)
        except OSError as error:
            raise ChaosError(f"the tap takes no connections at {address} ({error})") from error

    def timed_ms(self, broker: int, within_s: float, client_id: str = _OUTSIDER) -> float | None:
        """Return how long a broker takes to answer; None if it does not."""
        began = time.monotonic()
        with closing(self.ask(broker, client_id)) as question:
            answered = question.reply(within_s)
        return (time.monotonic() - began) * 1000 if answered else None

    # Logs

    def hit_lines(self, shown: Mapping[str, Any]) -> Iterator[tuple[int, Line]]:
        """Yield the lines of the tap, by broker, that name the rule and tell this."""
        for log in sorted(self.tap.folder.glob("*/group.log")):
            for line in _lines(log):
                if f'"{self.id}"' not in line or '"tap":{' not in line or line[-1] != "\n":
                    continue  # of no interest, or not written wholly yet
                body = line[line.index("request:") + len("request:") : line.rindex(" (")]
                content = json.loads(body)
                tap = content.get("tap", {})
                if self.id in tap.get("rules", ()) and shown.items() <= tap.items():
                    yield int(log.parent.name), content

    def times_logged(self, broker: int, hit: Line) -> int | None:
        """Return how often a broker's own log has a request of the tap's; None without a log.

        There is none of an API that brokers do not log. A request is known by its number and the
        addresses of its connection. Behind a NAT, as of brokers in containers, the log has none of
        the tap's addresses: then by its number, client and API, on any one connection, from the
        rule's beginning on.
        """
        header = hit["requestHeader"]
        if header["requestApiKeyName"] not in LOGGED_APIS:
            return None
        log, since_ms = self.logs.get(broker), self.began_ms - timing.NAT_CLOCK_MS
        if log is None or not log.exists() or log.is_relative_to(self.tap.folder):
            return None
        serial, client = header["correlationId"], header.get("clientId")
        numbers = (f'"correlationId":{serial},', f"correlationId={serial})")
        names = (f'"clientId":{json.dumps(client)}', f"clientId={client},")
        api = re.compile(rf'"requestApiKeyName":"{header["requestApiKeyName"]}"'
                         rf"|apiKey={header['requestApiKeyName']},")  # fmt: skip
        addresses = set(
            filter(None, map(_address, _lines(self.tap.folder / str(broker) / GROUP_LOG)))
        )
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
    with log.open(errors="replace") as lines:  # a log of hours is larger than memory
        yield from lines


def _address(line: str) -> str | None:
    """Return both addresses of the connection that a line of a request names."""
    found = _CONNECTION.search(line)
    return found[1] if found else None
