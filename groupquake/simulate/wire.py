"""The way between the members of a group and its coordinator.

Requests and responses take a time on it. What faults do to them stands in the tap's own table of
rules, which decides here as it does in the tap.
"""

from collections.abc import Callable
from functools import partial

from chaos.tap.exchange import Exchange as Tapped
from chaos.tap.rules import RuleTable, Way
from groupquake.simulate import timing
from groupquake.simulate.chance import Chance
from kafka_protocol.frames import KEYS, Head
from reference_coordinator.driving.driver import Agenda
from reference_coordinator.driving.simulation import Exchange


class Wire:
    """The way to the broker `broker`, which coordinates the group; `rules` are those in force."""

    def __init__(self, agenda: Agenda, chance: Chance) -> None:
        self._agenda, self._chance = agenda, chance
        self.rules = RuleTable()
        self.broker = 0
        self._held: list[Callable[[], None]] = []

    def end(self, rule: str) -> None:
        """Remove a rule; what it held goes on, in its order."""
        self.rules.remove(rule)
        held, self._held = self._held, []
        for go_on in held:
            go_on()

    def carry(self, exchange: Exchange, way: Way, arrive: Callable[[], None]) -> None:
        """Let a request, or its response, arrive after a time, unless a rule holds it."""
        after_ms = self._chance.between(timing.REQUEST_MS)
        if self.rules:
            tapped = self._tapped(exchange)
            if self.rules.holding(tapped, way):
                self._held.append(partial(self.carry, exchange, way, arrive))
                return
            after_ms += self.rules.latency_ns(tapped, way) / 1e6
        self._agenda.after(after_ms, arrive)

    def drops(self, exchange: Exchange) -> bool:
        """Whether a response is lost, with its connection."""
        return bool(self.rules and self.rules.hitting("drop-answers", self._tapped(exchange)))

    def doubles(self, exchange: Exchange) -> bool:
        """Whether a request arrives twice."""
        return bool(self.rules and self.rules.hitting("duplicate", self._tapped(exchange)))

    def _tapped(self, exchange: Exchange) -> Tapped:
        """Return an exchange as the tap sees it: a rule decides once whether it hits it."""
        if exchange.note is None:
            head = Head(KEYS[exchange.api], exchange.api_version, 0, exchange.client_id)
            instances = frozenset(filter(None, [exchange.client.instance]))
            exchange.note = Tapped(head, self.broker, instances)
        tapped: Tapped = exchange.note
        return tapped
