"""What findings about clients have in common: words of their sentences, and what shows them."""

import json
from collections.abc import Sequence
from math import inf

from kafka_protocol.bodies import generation_in, partitions_in
from kafka_protocol.errors import codes_in, name_of
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_rules.client_processes import Sent, Span, last_ms
from reports.judgement.rows import Json

SHOWN = 3  # how many requests of a kind a finding names


def error_of(one: Sent) -> str:
    """Return the name of the error that a request was answered."""
    return name_of(one.error or 0)


def often(count: int) -> str:
    """Return how often something happened, in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def seconds(ms: float) -> str:
    """Return a time in seconds, in words."""
    return f"{ms / 1_000:.1f} s"


def of_requests(
    shown: Sequence[ObservedRequest], judged: Span | None = None, partition: str = ""
) -> Json:
    """Return the columns of a finding that tell of the requests that show it, and of the time.

    A commit that is about a `partition` tells its offset.
    """
    of_them = min(seen.earliest_ms for seen in shown), max(map(last_ms, shown))
    from_ms, until_ms = judged or of_them
    return {
        "requests": ",".join(seen.id for seen in shown),
        "shown": json.dumps([_said(seen, partition) for seen in shown]),
        "from_ms": from_ms,
        "until_ms": until_ms,
    }


def _said(seen: ObservedRequest, partition: str) -> Json:
    """Return when a request came, its API, its generation or that of its answer, and its errors."""
    errors = {name_of(code): None for code in codes_in(seen.response_fields) if code}
    offset = dict(partitions_in(seen.request.get("topics", ()))).get(partition)
    return {
        "at_ms": round(seen.earliest_ms, 3),
        "api": seen.api,
        "generation": generation_in({**seen.response_fields, **seen.request}),
        "answer": ", ".join(errors) or "no error" if seen.answered_ms < inf else "no answer",
        **({} if offset is None else {"offset": f"{partition} at {offset['committedOffset']:,}"}),
    }
