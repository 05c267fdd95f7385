"""`groupquake compare`: the measures of judged runs side by side."""

from collections.abc import Sequence
from typing import Any

import click

from chaos.clusters.java import find_java
from groupquake.commands.options import json_option, spark_options
from groupquake.console import Console
from groupquake.exits import Exit
from reports import EvidenceError
from reports.ingest import cache
from reports.ingest.failures import explained
from reports.ingest.spark import SparkOptions, session
from reports.many_runs import measures

Json = dict[str, Any]


@click.command()
@click.argument("runs", metavar="RUN RUN…", nargs=-1, required=True)
@click.option(
    "--tables", metavar="URI",
    help="Run tables that `groupquake report --tables` wrote; each RUN is a name there.",
)  # fmt: skip
@json_option
@spark_options
def compare(runs: tuple[str, ...], tables: str | None, spark: SparkOptions) -> Exit:
    """Compare judged runs: rebalances by reason, their time, partitions without an owner.

    Counts are those of the impact phase. Each RUN is a judged run folder (path or URI).
    """
    names = [run.rstrip("/").rpartition("/")[2] for run in runs]
    if len(set(names)) < max(len(names), 2):
        raise click.UsageError("give two or more runs of different names")
    find_java()
    with explained(tables or runs[0]), session(spark, 0, cache.folder() / "spark.log") as opened:
        if tables is None:
            found = measures.of_runs(opened, runs)
        else:
            found = measures.tables_at(opened, tables, names)
        about = {row["run"]: row for row in found["runs"].toArrow().to_pylist()}
        if missing := [name for name in names if name not in about]:
            raise EvidenceError(f"{tables}: no run {', '.join(missing)} there")
        beside = measures.side_by_side(measures.measures(found), names)
    result = {"runs": [about[name] for name in names], "measures": beside}
    Console().answer(result, *_lines(names, result))
    return Exit.PASS


def _lines(names: Sequence[str], result: Json) -> list[str]:
    """Arrange the measures: a line for each measure, a column for each run."""
    letters = [
        chr(ord("A") + number) if number < 26 else str(number) for number in range(len(names))
    ]
    lines = [
        f"{letter}: {run['run']} ({run['experiment']}, Kafka {run['kafka_version']}"
        f" {run['coordinator']}, seed {run['seed']}): {run['verdict']}"
        for letter, run in zip(letters, result["runs"], strict=True)
    ]
    lines.append(f"{'':24}" + "".join(f"{letter:>14}" for letter in letters))
    group = None
    for row in result["measures"]:
        if row["group"] != group:
            group = row["group"]
            lines.append(f"group {group}")
        values = (_shown(row["measure"], row[name]) for name in names)
        lines.append(f"  {_title(row['measure']):22}" + "".join(f"{value:>14}" for value in values))
    return lines


def _title(measure: str) -> str:
    return measure.removesuffix("_ms").replace("_", " ")


def _shown(measure: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1_000:,.2f} s" if measure.endswith("_ms") else f"{value:,.0f}"
