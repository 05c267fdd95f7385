"""Whether the producers of a load produce: part of the steady state of every run."""

import json
from collections import Counter
from pathlib import Path

from chaos.steady import Observation
from chaos.tail import Tail
from loadtest.configs import configs_in
from scenarios import Experiment


class Producing:
    """What the history of a load tells of its producers, read as it grows.

    Producers are left out that send fewer than two records within the time of the steady state.
    """

    def __init__(self, history: Path, experiment: Experiment) -> None:
        within_s = experiment.steady_state.within_ms / 1000
        producers = configs_in(experiment).producers
        self._topics = {one.name: one.topic for one in producers if one.rate * within_s >= 2}
        self._tail = Tail(history)
        self._records: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._last: dict[str, str] = {}

    def observed(self) -> tuple[Observation, ...]:
        """Return for each producer whether brokers have acknowledged records of it."""
        for line in self._tail.appended():
            if '"producer"' in line:
                event = json.loads(line)
                name = event["member"]
                self._records[name] += event.get("records", 0)
                self._errors[name] += event.get("errors", 0)
                self._last[name] = event.get("error", self._last.get(name, "no answer"))
        return tuple(
            Observation(
                *(f"{name} produces", "records", topic, "some"),
                "some"
                if self._records[name]
                else f"none ({self._errors[name]} errors: {self._last.get(name, 'not started')})",
            )
            for name, topic in self._topics.items()
        )
