"""What a run came to is held against its forecast, and what lies outside is named."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from reports import EvidenceError
from reports.judgement.run import forecast
from reports.judgement.run.forecast import Foreseen, Interval, OfGroup
from reports.judgement.run.run_folder import RunFolder
from tests.reports.page_run import made_up
from tests.reports.reading import read

DUE = {"total": [6, 7], "session_expired": [3, 3], "new_member": [3, 4]}


def foreseen(impact: Mapping[str, Any] = DUE) -> bytes:
    """Return a forecast of one group in the impact phase; `simulate` writes more keys."""
    group = {"rebalances": {"impact": impact}, "stopped_ms": [0, 0], "open_because": []}
    return json.dumps({"experiment": "deploy", "groups": {"shop": group}}).encode()


def verdict(content: bytes, **impact: int) -> dict[str, Any]:
    """Return of a verdict what counts here."""
    groups = {"shop": {"by_cause": {"impact": impact}}}
    return {"forecast": [*forecast.beside(msgspec.json.decode(content, type=Foreseen), groups)]}


def test_what_was_foreseen_is_not_outside() -> None:
    """Each number lies in its interval, its ends included."""
    for new in (3, 4):
        assert forecast.outside(verdict(foreseen(), session_expired=3, new_member=new)) == []


def test_one_more_and_one_less_are_named() -> None:
    """By reason; their sum is as foreseen."""
    assert forecast.outside(verdict(foreseen(), session_expired=2, new_member=5)) == [
        "shop, impact, session_expired: 2 rebalances, 3 foreseen",
        "shop, impact, new_member: 5 rebalances, 3..4 foreseen",
    ]


def test_a_reason_that_nobody_foresaw_is_named() -> None:
    """And so is the number in all."""
    found = verdict(foreseen(), session_expired=3, new_member=4, pending_sync=1)
    assert forecast.outside(found) == [
        "shop, impact, total: 8 rebalances, 6..7 foreseen",
        "shop, impact, pending_sync: 1 rebalances, 0 foreseen",
    ]


def test_a_group_that_is_open_upwards_may_have_any_more() -> None:
    """Also for reasons that no course had."""
    content = foreseen({"total": [0, None]})
    assert forecast.outside(verdict(content, session_expired=9)) == []


def test_a_group_is_open_from_its_first_fault_on() -> None:
    """Its formation is not: a reason that no course had is named there."""
    due = {"formation": {"total": [1, 2], "new_member": [1, 2]}, "impact": {"total": [0, None]}}
    known = Foreseen({"shop": OfGroup({at: {of: Interval(*two) for of, two in some.items()}
                                       for at, some in due.items()})})  # fmt: skip
    seen = {"formation": {"new_member": 1, "pending_sync": 1}, "impact": {"pending_sync": 1}}
    rows = [*forecast.beside(known, {"shop": {"by_cause": seen}})]
    assert [(row["phase"], row["reason"]) for row in rows if row["outside"]] == [
        ("formation", "pending_sync")
    ]


def test_a_reason_that_no_line_tells_may_be_any() -> None:
    """Then only the number in all is compared."""
    assert forecast.outside(verdict(foreseen(), session_expired=3, none=3)) == []
    assert len(forecast.outside(verdict(foreseen(), session_expired=3, none=5))) == 1


def test_a_run_without_a_forecast_has_none(tmp_path) -> None:
    """As those of earlier versions: nothing is outside, and the page has no such section."""
    made = made_up(tmp_path)
    run, judged, *_ = made.finish()
    assert run.foreseen is None
    assert forecast.outside(judged) == []
    assert "Forecast" not in read(made).text


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{", b'{"groups": 1}', b"\xff", b"[" * 100_000, foreseen({"total": [1]}),
        foreseen({"total": ["1", 2]}), foreseen({"total": [None, 2]}),
        b'{"groups": {}, "more": ' + b"[" * 100_000,
    ],
    ids=range(10),
)  # fmt: skip
def test_a_forecast_that_was_altered_is_one_line(tmp_path, content: bytes) -> None:
    """It names the file."""
    (tmp_path / forecast.FILE).write_bytes(content)
    with pytest.raises(EvidenceError) as caught:
        _ = RunFolder(tmp_path).foreseen
    assert "forecast.json: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("interval", "shown"),
    [
        ((2, 2), "2"),
        ((1, 3), "1..3"),
        ((0, None), "0.."),
        ((0.5, 1.5), "0.5..1.5"),
        ((1_234_567, 2_000_000), "1234567..2000000"),
    ],
)
def test_intervals_are_short(interval: tuple[float, float | None], shown: str) -> None:
    """As people read them."""
    assert str(Interval(*interval)) == shown
