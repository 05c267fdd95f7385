"""Lines of the client history that no client writes."""

import json
from typing import Any

import pytest

from reports.judgement.run.history import events_by_group

LINE = {"at_ms": 2.5, "member": "a", "group": "g", "event": "assigned", "partitions": ["o-1"]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at_ms", float("nan")),
        ("at_ms", float("inf")),
        ("at_ms", "2.5"),
        ("at_ms", True),
        ("at_ms", None),
        ("sent_at_ms", float("nan")),
        ("sent_at_ms", "1"),
        ("member", ""),
        ("member", ["a"]),
        ("group", ["g"]),
        ("event", ["assigned"]),
        ("event", "unheard"),
        ("partitions", "o-1"),
        ("partitions", [None, "o-1"]),
        ("partitions", [["o", 1]]),
        ("partitions", {"o": 1}),
        ("offsets", "3"),
        ("offsets", 0.5),
        ("member_id", 3),
        ("instance_id", ["i"]),
        ("api", 11),
    ],
)
def test_a_line_with_another_value_is_passed_over(field: str, value: Any) -> None:
    lines = [json.dumps({**LINE, field: value}), json.dumps(LINE)]
    ((group, (event,)),) = events_by_group(lines).items()
    assert (group, event.client, event.at_ms, event.partitions) == ("g", "a", 2.5, {"o-1"})
    assert events_by_group([json.dumps({**LINE, "sent_at_ms": None, "offsets": None})])
