"""The rows of a group as Arrow takes them, whatever numbers a damaged line has."""

from reports.incident.group_incident import row_about
from reports.incident.stock_lines import Line
from reports.incident.stock_logs import OF_GROUP, batched


def line(at_ms: float, template: str, **fields: str) -> Line:
    return Line(at_ms, "1", 0, template, "g", fields, f"{template} as its broker wrote it")


def test_numbers_of_eighteen_digits_have_room() -> None:
    most = "9" * 18
    row = row_about(
        "g",
        [
            line(1_000, "preparing", reason="leave", generation=most),
            line(2_000, "stabilized", members=most),
            line(3_000, "assignment"),
        ],
        None,
    )
    [batch] = batched(iter([row]), OF_GROUP)
    [found] = batch.to_pylist()
    [rebalance] = found["rebalances"]
    assert (rebalance["members"], rebalance["generation"]) == (int(most), int(most))
    assert (rebalance["took_ms"], rebalance["line"]) == (2_000, "preparing as its broker wrote it")
