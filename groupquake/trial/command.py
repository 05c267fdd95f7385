"""`groupquake trial`: clients against a fixed set of experiments, and what each of them did."""

import json
import os
import platform
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from chaos.clusters import ClusterError
from groupquake import folders
from groupquake.clients.adapters import AdapterError, command_of
from groupquake.commands.options import kafka_option, output_options
from groupquake.console import Console
from groupquake.exits import Exit, writing
from groupquake.nightly.night import CODES, Night, read_verdict
from groupquake.nightly.suite import Job, Platform
from groupquake.signals import SIGNALS
from groupquake.trial import page
from groupquake.trial.cells import Cell, as_json, cell_of, kept, worst
from groupquake.trial.experiments import (
    COMPARISON,
    EXPERIMENTS,
    OWN,
    Candidate,
    Fired,
    planned,
)
from groupquake.trial.run_facts import load, software
from reports.judgement.clients.client_rules.findings import CLIENT_RULES
from reports.page.wording import counted
from scenarios import Experiment, ScenarioError
from scenarios.clients import ADAPTERS
from scenarios.fields import BIG_SEED
from scenarios.problems import nearest
from scenarios.releases import line_of

Json = dict[str, Any]


@click.command(
    epilog=f"Exit codes: {Exit.PASS:d} all kept the protocol; {Exit.FAIL:d} a client or a broker "
    f"broke it; {Exit.UNKNOWN:d} something is unknown, or a client did not run; "
    f"{Exit.ABORTED:d} ended by a signal; {Exit.NOT_HEALED:d} a fault is still open; "
    f"{Exit.USAGE:d} bad usage."
)
@click.option(
    "--client",
    "clients",
    metavar="NAME|COMMAND",
    multiple=True,
    required=True,
    help="A client that comes with groupquake, `all` of them, or your own program as"
    " NAME=COMMAND, with fields such as {bootstrap} in it. Repeatable.",
)
@kafka_option
@click.option(
    "--experiments",
    metavar="NAME,NAME,…",
    default="all",
    show_default=True,
    help=f"Which: {', '.join(EXPERIMENTS)}.",
)
@click.option("--seed", type=click.IntRange(0, BIG_SEED), help="Of the order of faults. [random]")
@click.option(
    "--trials",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("trials"),
    show_default=True,
    help="Parent of the trial's folder: run folders, trial.json, trial.md and trial.html.",
)
@click.option(
    "--comparison/--no-comparison",
    default=True,
    show_default=True,
    help=f"Run Kafka's own client ({COMPARISON}) under the same faults, to compare the costs.",
)
@output_options
def trial(
    clients: tuple[str, ...], kafka: str, experiments: str, seed: int | None, directory: Path,
    *, comparison: bool,
) -> Exit:  # fmt: skip
    """Try clients on a real cluster: did they keep the protocol, and did its brokers.

    Members restart, crash, freeze, are duplicated and removed, and lose their coordinator or the
    answer to their JoinGroup, which the tap drops. All experiments of a client run at once, each
    in a group of its own. Each has two verdicts: did the brokers keep the protocol, and did the
    client. The page has the rules that a client kept and broke, what to mend, and what each
    disturbance cost it, beside Kafka's own client, which runs too and does not count.
    """
    wanted = _wanted(experiments)
    check_release(kafka)
    tried = candidates_of(clients)
    candidates = candidates_of((*clients, COMPARISON)) if comparison else tried
    chosen = secrets.randbelow(BIG_SEED) if seed is None else seed
    runs = {one: one.experiment(wanted, kafka) for one in candidates}
    plans = {one: planned(run, chosen) for one, run in runs.items()}
    console = Console()
    ran = carry_out(runs, "trial", directory, chosen, (), console)
    folder, record = ran.folder, ran.record
    rows, found = _result(plans, wanted, ran)
    result = {
        "verdict": worst(rows[one.name] for one in tried),
        "kafka": kafka,
        "seed": chosen,
        "at": record["started_at"],
        "groupquake": " ".join(filter(None, (record["groupquake_version"], record["git"]))),
        "machine": f"{os.cpu_count()} cores, {platform.platform()}",
        "experiments": list(wanted),
        "tried": [one.name for one in tried],
        "comparison": COMPARISON if COMPARISON in found else None,
        "rules": {
            name: {"demands": of.demands, "source": of.source, "mend": of.mend, "about": of.about}
            for name, of in CLIENT_RULES.items()
        },
        "clients": found,
    }
    (folder / "trial.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (folder / "trial.md").write_text(page.markdown(result), encoding="utf-8")
    (folder / "trial.html").write_text(page.html(result), encoding="utf-8")
    lines = [*page.lines(result), f"page: {folder / 'trial.html'}"]
    console.answer(result, *lines)
    if ran.code in (Exit.ABORTED, Exit.NOT_HEALED):
        return ran.code
    return CODES[worst(rows[one.name] for one in tried)]


class Ran(NamedTuple):
    """What became of the runs of a `folder`: the night's `record`, and why some `why_not`."""

    folder: Path
    why_not: Mapping[Candidate, str]
    record: Json
    code: Exit


def carry_out(
    runs: Mapping[Candidate, Experiment], label: str, directory: Path, seed: int,
    options: tuple[str, ...], console: Console,
) -> Ran:  # fmt: skip
    """Run the experiment of each client, one after the other, in a new folder in a directory."""
    with writing(f"{directory}: no folder can be made there", "; give another with --trials"):
        folder = folders.make(directory, label).resolve()
        files = {one: folder / f"{run.name}.yaml" for one, run in runs.items()}
        for one, run in runs.items():
            files[one].write_text(run.dump(), encoding="utf-8")
    why_not = _unbuilt(runs, console)
    jobs = [
        Job(run.name, str(files[one]), Platform(kafka=run.cluster.version), seed, (), options)
        for one, run in runs.items()
        if one not in why_not
    ]
    console.progress(f"{counted(len(jobs), 'client')}, in {folder}")
    night = Night(label, jobs, folder, progress=console.progress)
    with SIGNALS.handling(night.abort):
        return Ran(folder, why_not, *night.run())


def _result(
    plans: Mapping[Candidate, Sequence[Fired]], wanted: Sequence[str], ran: Ran
) -> tuple[dict[str, list[Cell]], Json]:
    """Return the cells of each client, and what `trial.json` has of it."""
    runs = {run["experiment"]: run for run in ran.record["runs"]}
    rows, found = {}, {}
    for one, plan in plans.items():
        run = runs.get(f"trial-{one.name}", {})
        folder = ran.folder / run["folder"] if run.get("folder") else None
        verdict = read_verdict(folder)
        rows[one.name] = [cell_of(one, name, verdict, plan) for name in wanted]
        found[one.name] = {
            "about": one.about,
            "software": software(folder) if folder and verdict else None,
            "load": load(folder) if folder and verdict else None,
            "command": list(one.command),
            "folder": run.get("folder"),
            "took_s": run.get("took_s"),
            "why_not": ran.why_not.get(one) or (run.get("why") if verdict is None else None),
            "rules": kept(rows[one.name]),
            "cells": [as_json(cell) for cell in rows[one.name]],
        }
    return rows, found


def _unbuilt(runs: Mapping[Candidate, Experiment], console: Console) -> dict[Candidate, str]:
    """Build what has to be built; return why some cannot be."""
    found = {}
    for one, run in runs.items():
        if one.command or one.name not in ADAPTERS:
            continue
        try:
            command_of(one.name, run.cluster.version, None, console.progress)
        except (AdapterError, ClusterError) as error:
            found[one] = str(error)
            console.progress(f"{error}: left out")
    return found


def candidates_of(texts: Sequence[str]) -> list[Candidate]:
    """Read the clients; the same name may stand once only."""
    named = [name for text in texts for name in (OWN if text == "all" else (text,))]
    found: dict[str, Candidate] = {}
    for one in map(Candidate.of, named):
        known = found.get(one.name)
        if known is not None and known != one:
            raise click.UsageError(
                f"--client: two programs are called {one.name}; write NAME=COMMAND"
            )
        found[one.name] = one
    return list(found.values())


def _wanted(text: str) -> tuple[str, ...]:
    if text == "all":
        return tuple(EXPERIMENTS)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in EXPERIMENTS:
            raise click.UsageError(
                f"--experiments: there is no experiment '{name}'; {nearest(name, EXPERIMENTS)}"
            )
    return names


def check_release(kafka: str) -> None:
    """Raise ScenarioError if a release of the brokers is not known."""
    try:
        line_of(kafka)
    except ValueError as error:
        raise ScenarioError(f"--kafka {kafka}: {error}") from error
