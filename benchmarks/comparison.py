"""The comparison's throughput beside a plain loop's: `python -m benchmarks.comparison`."""

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.evidence import Evidence, multiply
from benchmarks.process import Watched, watch
from benchmarks.table import table

Json = dict[str, Any]


@click.command()
@click.option("--megabytes", default=200.0, show_default=True, help="Size of the evidence.")
@click.option(
    "--pairs",
    default=2,
    show_default=True,
    help="How often both sides run, in turn; medians.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def main(megabytes: float, pairs: int, *, as_json: bool) -> None:
    """Judge a big run by Spark and by a plain loop around the same oracle, in turn."""
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as folder:
        try:
            evidence = multiply(megabytes, Path(folder))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        runs: dict[str, list[Json]] = {"spark": [], "loop": []}
        for number in range(1, pairs + 1):
            for side, done in runs.items():
                click.echo(f"pair {number} of {pairs}: {side}", err=True)
                done.append(_run(side, evidence))
    figures = _figures(evidence, runs)
    click.echo(json.dumps(figures, indent=2) if as_json else _shown(figures))


def _run(side: str, evidence: Evidence) -> Json:
    """Run a side once; its figures count only if its findings are the expected ones."""
    watched = watch("-m", "benchmarks.sides", side, str(evidence.folder))
    result = json.loads(watched.output)
    expected = {
        "lines": evidence.lines,
        "rejected": 0,
        "explained": evidence.requests,
        "violations": 0,
        "rebalances": evidence.rebalances,
        "differences": 0,
    }
    if result["found"] != expected:
        raise click.ClickException(
            f"{side}: found {result['found']} instead of {expected};"
            " no figures are printed for a wrong result"
        )
    return _measured(result, watched)


def _measured(result: Json, watched: Watched) -> Json:
    return {
        "seconds": sum(result["stages_s"].values()),
        "start_up_s": result["start_up_s"],
        "stages_s": result["stages_s"],
        "cpu_s": watched.cpu_s,
        "peak_mb": watched.peak_mb,
    }


def _figures(evidence: Evidence, runs: dict[str, list[Json]]) -> Json:
    sides = {side: _side(evidence, done) for side, done in runs.items()}
    return {
        "evidence": {
            "megabytes": evidence.bytes / 1e6,
            "lines": evidence.lines,
            "requests": evidence.requests,
            "rebalances": evidence.rebalances,
            "groups": evidence.groups,
        },
        "cores": os.cpu_count(),
        **sides,
        "spark_to_loop": sides["spark"]["mb_per_s"] / sides["loop"]["mb_per_s"],
    }


def _side(evidence: Evidence, done: Sequence[Json]) -> Json:
    """Return the medians over the runs of a side."""
    middle = lambda name: median(run[name] for run in done)
    seconds = middle("seconds")
    return {
        "mb_per_s": evidence.bytes / 1e6 / seconds,
        "requests_per_s": evidence.requests / seconds,
        "seconds": seconds,
        "start_up_s": middle("start_up_s"),
        "cpu_s": middle("cpu_s"),
        "peak_mb": middle("peak_mb"),
        "stages_s": {
            name: median(run["stages_s"][name] for run in done) for name in done[0]["stages_s"]
        },
        "all_seconds": [run["seconds"] for run in done],
    }


def _shown(figures: Json) -> str:
    evidence, ratio = figures["evidence"], figures["spark_to_loop"]
    rows = [("", "MB/s", "requests/s", "seconds", "start-up", "processor", "peak memory")]
    stages = []
    for side in ("spark", "loop"):
        result = figures[side]
        rows.append(
            (
                side,
                f"{result['mb_per_s']:.2f}",
                f"{result['requests_per_s']:,.0f}",
                f"{result['seconds']:.1f}",
                f"{result['start_up_s']:.1f} s",
                f"{result['cpu_s']:.1f} s",
                f"{result['peak_mb']:,.0f} MB",
            )
        )
        stages += [(f"  {side}: {n}", f"{s:.1f} s") for n, s in result["stages_s"].items()]
    verdict = (
        f"Spark is {ratio:.2f} times as fast as the loop"
        if ratio >= 1
        else f"Spark is slower: the loop is {1 / ratio:.2f} times as fast"
    )
    title = (
        f"{evidence['megabytes']:.0f} MB, {evidence['lines']:,} lines, "
        f"{evidence['requests']:,} requests of {evidence['groups']:,} groups, all explained; "
        f"{figures['cores']} cores; medians"
    )
    return "\n".join((title, table(rows), table(stages), f"{verdict}, its start-up left out."))


if __name__ == "__main__":
    main()
