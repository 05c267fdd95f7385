"""Lines about members whose ids no answer told: they excuse as many lines as there are of them."""

import pytest
from pyspark.sql import SparkSession

from reports import member_lines

pytestmark = pytest.mark.spark

OBSERVED = (
    "group STRING, template STRING, member STRING, instance STRING, at_ms DOUBLE, broker STRING,"
    " line INT"
)
EXPECTED = (
    "group STRING, line STRING, subject STRING, at_ms DOUBLE, earliest_ms DOUBLE, latest_ms DOUBLE"
)
KIND = "dynamic_given_id"


def compared(spark: SparkSession, observed: list[str], expected: list[str]) -> set[tuple[str, str]]:
    """Compare lines of one kind, all of the same instant, by the ids that they name."""
    said = [("g", KIND, subject, 5.0, 5.0, 5.0) for subject in expected]
    seen = [("g", KIND, member, None, 5.0, "1", n) for n, member in enumerate(observed, 1)]
    found = member_lines.compare(
        spark.createDataFrame(seen, OBSERVED), spark.createDataFrame(said, EXPECTED)
    )
    return {(row["outcome"], row["subject"]) for row in found.collect()}


@pytest.mark.parametrize(
    ("observed", "expected", "found"),
    [
        (["c-1"], ["c-1"], set()),
        (["c-1"], [], {("unexpected_line", "c-1")}),
        (["c-1", "c-2"], ["c-1", "c-?7"], set()),
        # one line is the unnamed one's, and nobody knows which
        (
            ["c-1", "c-2", "c-3"],
            ["c-1", "c-?7"],
            {("unexpected_line", "c-2"), ("unexpected_line", "c-3")},
        ),
        (["c-2"], ["c-1", "c-?7"], {("missing_line", "c-1")}),
    ],
)
def test_an_id_that_nobody_was_told(
    spark: SparkSession, observed: list[str], expected: list[str], found: set[tuple[str, str]]
) -> None:
    assert compared(spark, observed, expected) == found
