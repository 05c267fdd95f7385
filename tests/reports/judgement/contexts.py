"""What a group is judged by in tests, and what its clients say beside what brokers answered."""

from collections.abc import Iterable, Sequence
from typing import Any

from kafka_protocol.coordinator_lines import JAVA
from reference_coordinator.classic.releases import NEWEST, promised_by
from reports.judgement.clients.comparison import Clients
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs
from reports.judgement.logged import Chunk, LoggedRow, Requests
from reports.judgement.run.history import ClientEvent, in_order
from reports.judgement.run_context import RunContext


def context(epochs: CoordinatorEpochs | None = None, **known: Any) -> RunContext:
    """Return a context in which no more is known of a run."""
    epochs = CoordinatorEpochs(None) if epochs is None else epochs
    return RunContext(JAVA, NEWEST, promised_by(NEWEST), epochs, **known)


def compared(
    rows: Iterable[LoggedRow],
    events: Iterable[ClientEvent] = (),
    silent_from_ms: float = float("inf"),
    **known: Any,
) -> tuple[Sequence[dict[str, Any]], Clients]:
    """Compare what clients say with a group's requests; return the breaches.

    No request was answered after `silent_from_ms`.
    """
    requests, clients = Requests.of(Chunk.of(rows)), Clients(context(**known))
    answered = zip(requests.observed, requests.error_codes, requests.arrived_ms, strict=True)
    given = [one for one in answered if one[0].answered_ms <= silent_from_ms]
    found = clients.add(given, sorted(events, key=in_order), float("-inf"))
    return [*found, *clients.end()], clients
