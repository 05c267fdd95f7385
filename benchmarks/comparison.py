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
@click.option("--megabytes", default=200.0, show_default=True, help="How much evidence.")
@click.option(
    "--pairs", default=2, show_default=True, help="How often both sides run, in turn; medians."
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
    """Run a side once; its figures are worth something only if it found all to be in order."""
    watched = watch("-m", "benchmarks.sides", side, str(evidence.folder))
    told = json.loads(watched.output)
    expected = {
        "lines": evidence.lines,
        "rejected": 0,
        "explained": evidence.requests,
        "violations": 0,
        "rebalances": evidence.rebalances,
        "differences": 0,
    }
    if told["found"] != expected:
        raise click.ClickException(
            f"{side}: the evidence is sound, but {told['found']} was found in place of {expected};"
            " the figures would say nothing"
        )
    return _measured(told, watched)


def _measured(told: Json, watched: Watched) -> Json:
    return {
        "seconds": sum(told["stages_s"].values()),
        "start_up_s": told["start_up_s"],
        "stages_s": told["stages_s"],
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
    """Sum up the runs of a side by their medians."""
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
        told = figures[side]
        rows.append(
            (
                side,
                f"{told['mb_per_s']:.2f}",
                f"{told['requests_per_s']:,.0f}",
                f"{told['seconds']:.1f}",
                f"{told['start_up_s']:.1f} s",
                f"{told['cpu_s']:.1f} s",
                f"{told['peak_mb']:,.0f} MB",
            )
        )
        stages += [(f"  {side}: {n}", f"{s:.1f} s") for n, s in told["stages_s"].items()]
    verdict = (
        f"Spark is {ratio:.2f} times as fast as the loop"
        if ratio >= 1
        else f"Spark loses: the loop is {1 / ratio:.2f} times as fast"
    )
    title = (
        f"{evidence['megabytes']:.0f} MB, {evidence['lines']:,} lines, "
        f"{evidence['requests']:,} requests of {evidence['groups']:,} groups, all explained; "
        f"{figures['cores']} cores; medians"
    )
    return "\n".join((title, table(rows), table(stages), f"{verdict}, its start-up left out."))


if __name__ == "__main__":
    main()
