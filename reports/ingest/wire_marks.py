"""Marks of coordinator epochs at level `wire`: the few requests that show where epochs end.

Nearly all answers show that a coordinator goes on. What is read are those near an answer that shows
that a broker does not coordinate the group, those before and after another broker's, and those
around a restart. Requests without an answer are few, and all read.
"""

from collections.abc import Iterator
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_protocol.apis import GROUP_APIS
from reports.judgement.coordinators.wire_epochs import SAYS, SAYS_NOTHING, Mark, marks_in
from reports.judgement.run.run_folder import RunFolder

NEAR_MS = 5_000
"""How near: further than the windows of two requests reach."""
COLUMNS = (
    "group", "broker", "api", "readable", "error_code", "response", "earliest_ms", "at_ms",
    "latest_ms", "answered_ms",
)  # fmt: skip


def rows(requests: DataFrame, run: RunFolder) -> Iterator[tuple[str, Mark]]:
    """Read the marks of all groups from the table `requests`, each with its group."""
    code = F.coalesce(
        "error_code", F.regexp_extract("response", r'"errorCode":(-?\d+)', 1).try_cast("int")
    )
    mine = requests.where(F.col("readable") & F.col("api").isin(*GROUP_APIS))
    unanswered = mine.where(F.col("response").isNull()).select(*COLUMNS)
    mine = mine.where(F.col("response").isNotNull()).withColumn("code", code)
    mine = mine.where(~F.col("code").isin(*map(int, SAYS_NOTHING)))
    away = F.col("code").isin(*map(int, SAYS)).cast("int")
    of_broker = Window.partitionBy("group", "broker").orderBy(F.col("at_ms").cast("long"))
    of_group = Window.partitionBy("group").orderBy("at_ms")
    near = F.max(away).over(of_broker.rangeBetween(-NEAR_MS, NEAR_MS)) == 1
    other = [
        F.coalesce(neighbour("broker").over(of_group) != F.col("broker"), F.lit(True))
        for neighbour in (F.lag, F.lead)
    ]
    around = [
        F.lit(at_ms).between(
            F.coalesce(F.lag("at_ms").over(of_group), "at_ms"),
            F.coalesce(F.lead("at_ms").over(of_group), "at_ms"),
        )
        for _, at_ms in run.restarts
    ]
    kept = mine.withColumn("kept", reduce(or_, [near, *other, *around])).where("kept")
    yield from marks_in(kept.select(*COLUMNS).union(unanswered).toArrow().to_pylist())
