"""Goals beside figures: `python -m benchmarks.goals`, or `make bench`.

Each row runs real brokers, members and faults, and gives lines: a figure beside a named peer that
was measured in the same run, and its goal, if it has one. The whole takes about 25 minutes on two
cores. With `--json` the rows of earlier calls are kept, so that rows can be measured one by one.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks import foresight, latency, members, oracle, page, records, runs
from benchmarks.table import HEAD, Line, as_text, markdown, table
from chaos.clusters.oracle import OracleCluster
from chaos.clusters.process import ProcessCluster

Json = dict[str, Any]
Show = Callable[[str], None]
WIRE, NEVER = 10_000, "1h"
"""Members of `wire` on one core; the commit interval of those that do not commit meanwhile."""
PEERS = {"librdkafka": 300, "aiokafka": 20, "kafka-python": 20}
SERVED = 500
"""Members of librdkafka on the served oracle."""
SECONDS = 30.0
"""How long members are measured."""
HUB_SECONDS = {"librdkafka": 100.0}
"""How long instead, so that one second of a hundred is not the p99 of its longest delays."""
ORACLE_GOALS = {"steady 5": 250_000, "steady 500": 150_000, "storm": 20_000}
FORESIGHT_GOALS_S = dict(zip(foresight.CASES, (5, 10, 120), strict=True))
EACH = 4_000
"""Members of a Locust process, where there are several."""


# how rows are measured


def _members(folder: Path, show: Show) -> Json:
    loads = {"wire": (WIRE, NEVER)} | {peer: (count, NEVER) for peer, count in PEERS.items()}
    loads["wire, commits"] = (WIRE, "5s")
    found = {}
    for name, (count, commit) in loads.items():
        client = name.partition(",")[0]
        seconds, place = HUB_SECONDS.get(client, SECONDS), folder / f"{client}-{commit}"
        found[name] = members.hold(place, client, count, seconds, commit, show)
    return found


def _served(folder: Path, show: Show) -> Json:
    return {
        one.kind: members.hold(folder / one.kind, "librdkafka", SERVED, SECONDS, NEVER, show,
                               cluster_kind=one)
        for one in (OracleCluster, ProcessCluster)
    }  # fmt: skip


def _processes(folder: Path, show: Show) -> Json:
    return {
        str(many): members.hold(folder / str(many), "wire", many * EACH, SECONDS, NEVER, show, many)
        for many in (1, 2)
    }


# what their lines say


def _of_members(found: Json) -> Iterator[Line]:
    for name, one in found.items():
        if name == "wire":
            continue
        what = f"{one['members']:,} of {name}" + ("" if name in PEERS else " every 5 s")
        yield Line(f"{what}: a core holds", _cost(one), one["per_core"], "members")
    wire, peer = found["wire"], found["librdkafka"]
    what = f"{wire['members']:,} of wire, heartbeats every 3 s"
    yield Line(f"{what}: a core holds", _cost(wire), wire["per_core"], "members", WIRE, more=True)
    served = f"in the broker {wire['served_p99_ms']:.3g} ms"
    yield Line(f"{what}: p99", served, wire["p99_ms"], "ms", 100)
    lost = ", ".join(f"{one['lost']} of {name}" for name, one in found.items() if name != "wire")
    yield Line(f"{what}: sessions lost", lost, wire["lost"], "", 0)
    yield Line("wire : librdkafka, members a core", f"librdkafka {as_text(peer['per_core'])}",
               wire["per_core"] / peer["per_core"], "x", 20, more=True)  # fmt: skip
    yield Line("hub gap, p99 of each second's longest", f"wire {wire['hub_gap_p99_ms']:.3g} ms",
               peer["hub_gap_p99_ms"], "ms", 100)  # fmt: skip


def _cost(one: Json) -> str:
    return f"{one['cpu']:.1%} of a core, {one['memory_kb']:,.0f} KB each"


def _of_processes(found: Json) -> Iterator[Line]:
    one, two = found["1"], found["2"]
    yield Line("1 to 2 Locust processes: members that the busiest one's processor time holds",
               f"{as_text(one['members'])} in one: {one['cpu']:.1%};"
               f" {as_text(two['members'])} in two: {two['cpu']:.1%}",
               2 * two["per_core"] / one["per_core"], "x", 1.8, more=True)  # fmt: skip
    yield Line(f"{as_text(two['members'])} in two processes: heartbeat p99",
               f"one: {one['p99_ms']:g} ms", two["p99_ms"], "ms", one["p99_ms"])  # fmt: skip


def _of_served(found: Json) -> Iterator[Line]:
    ours, broker = found[OracleCluster.kind], found[ProcessCluster.kind]
    for name, what in {"served": "in it, by its log", "asked": "for one more client"}.items():
        yield Line(f"the served oracle on one core, {SERVED} of librdkafka: heartbeat p99 {what}",
                   f"a broker {broker[f'{name}_p99_ms']:.3g} ms", ours[f"{name}_p99_ms"],
                   "ms", 20)  # fmt: skip


def _of_group_log(found: Json) -> Iterator[Line]:
    names = {"traffic": "2,000 heartbeats/s, processor time", "answers": "their answers, p50",
             "idle": "no traffic, processor time"}  # fmt: skip
    for name, what in names.items():
        one = found[name]
        (low, high), unit = one["ratio_quartiles"], one["unit"].split()[0].rstrip(",")
        yield Line(f"group log, {what}, with : without",
                   f"{one['bare_p50']:.3g} {unit} without; quartiles {low:.2f} to {high:.2f},"
                   f" {one['pairs']} pairs", one["ratio_p50"], "x")  # fmt: skip


def _of_chaos(found: Json) -> Iterator[Line]:
    yield Line(f"chaos timing error, {found['faults']} faults: p99",
               f"p50 {found['p50_ms']:.3g} ms, most {found['most_ms']:.3g} ms",
               found["p99_ms"], "ms", 100)  # fmt: skip


def _of_tap(found: Json) -> Iterator[Line]:
    direct, through = found["direct"], found["through"]
    yield Line(f"tap, {latency.RATE:,.0f} heartbeats/s: p50 of their answers",
               f"directly {direct['p50_ms']:.3g} ms; p99 {direct['p99_ms']:.3g} and"
               f" {through['p99_ms']:.3g} ms; {through['cpu']:.0%} of a core",
               through["p50_ms"], "ms")  # fmt: skip


def _of_oracle(found: Json) -> Iterator[Line]:
    for name, goal in ORACLE_GOALS.items():
        yield Line(f"oracle: {name}", "", found[name], "requests/s", goal, more=True)


def _of_foresight(found: Json) -> Iterator[Line]:
    for name, goal in FORESIGHT_GOALS_S.items():
        yield Line(f"foresight: {name}", "", found[name], "s", goal)


def _of_verdict(found: Json) -> Iterator[Line]:
    stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found["stages_s"].items())
    yield Line(f"{runs.EXPERIMENT} to its verdict : its plan and the cluster's start", stages,
               found["ratio"], "x", 1.25)  # fmt: skip


def _of_records(found: Json) -> Iterator[Line]:
    yield Line(f"{records.RECORDS:,} records noted in a run of {records.RUN_S} s: a core's share",
               f"{found['seconds']:.3g} s; {found['bytes'] / 1000:,.0f} KB of history",
               100 * found["seconds"] / records.RUN_S, "%", 5)  # fmt: skip


def _of_page(found: Json) -> Iterator[Line]:
    shut, seen = found["closed"], found["open"]
    yield Line(f"hub gap, {found['members']} of librdkafka, live page open: p99",
               f"no page {shut['p99_ms']:.3g} ms; p50 {shut['p50_ms']:.3g} and"
               f" {seen['p50_ms']:.3g} ms; load {found['load']:.1f}",
               seen["p99_ms"], "ms", 100)  # fmt: skip


class Row(NamedTuple):
    """How a row is measured, and what its lines are."""

    measure: Callable[[Path, Show], Json]
    lines: Callable[[Json], Iterator[Line]]


ROWS: Mapping[str, Row] = {
    "members": Row(_members, _of_members),
    "served": Row(_served, _of_served),
    "processes": Row(_processes, _of_processes),
    "group-log": Row(
        lambda folder, show: latency.of_group_log(folder, 20, 2.5, show), _of_group_log
    ),
    "page": Row(
        lambda folder, show: page.measure(
            folder, PEERS["librdkafka"], HUB_SECONDS["librdkafka"], show
        ),
        _of_page,
    ),
    "chaos": Row(lambda folder, _: runs.chaos(folder, 100), _of_chaos),
    "tap": Row(lambda folder, _: latency.of_tap(folder, latency.RATE, 20.0), _of_tap),
    "records": Row(lambda folder, _: records.measure(folder), _of_records),
    "oracle": Row(lambda *_: oracle.measure(), _of_oracle),
    "foresight": Row(lambda *_: foresight.measure(), _of_foresight),
    "verdict": Row(lambda folder, _: runs.verdict(folder), _of_verdict),
}


def lines(found: Mapping[str, Json]) -> list[Line]:
    """Return the lines of measured rows, in their order."""
    return [line for name, row in ROWS.items() if name in found for line in row.lines(found[name])]


@click.command()
@click.option("--rows", type=click.Choice(list(ROWS)), multiple=True, help="Rows to measure; all.")
@click.option(
    "--json", "kept", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Keep the figures there, beside those of other rows that it has.",
)  # fmt: skip
@click.option(
    "--page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write the table there, as Markdown.",
)  # fmt: skip
def main(rows: tuple[str, ...], kept: Path | None, page: Path | None) -> None:
    """Measure rows, and print their goals beside their figures."""
    found: dict[str, Json] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    began_s, due = time.monotonic(), rows or tuple(ROWS)

    def show(text: str) -> None:
        click.echo(f"[{time.monotonic() - began_s:6.0f} s] {text}", err=True)

    for number, name in enumerate(due, start=1):
        show(f"{name}: row {number} of {len(due)}")
        with tempfile.TemporaryDirectory(prefix="groupquake-bench-") as folder:
            found[name] = ROWS[name].measure(Path(folder), show)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found, indent=1) + "\n")
    cells = [HEAD, *(line.cells for line in lines(found))]
    if page:
        page.write_text(markdown(cells))
    click.echo(table(cells))
    click.echo(f"{os.cpu_count()} cores; {time.monotonic() - began_s:,.0f} s")


if __name__ == "__main__":
    main()
