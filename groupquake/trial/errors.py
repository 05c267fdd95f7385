"""`groupquake clients errors`: what clients do with errors, beside what Kafka's own does."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from groupquake.commands.options import kafka_option
from groupquake.console import Console
from groupquake.exits import Exit
from groupquake.trial.command import candidates_of, carry_out, check_release
from groupquake.trial.error_cells import CELLS, Did, experiment, read
from scenarios.fields import BIG_SEED

KAFKAS_OWN = "java"
FIVE = (KAFKAS_OWN, "librdkafka-process", "franz-go", "aiokafka", "kafka-python")


@click.command()
@click.option("--client", "clients", metavar="NAME|COMMAND", multiple=True, default=FIVE,
              help="As for `trial`. Repeatable.", show_default=", ".join(FIVE))  # fmt: skip
@kafka_option
@click.option(
    "--trials", "directory", type=click.Path(file_okay=False, path_type=Path),
    default=Path("trials"), show_default=True,
    help="Parent of the folder: run folders, errors.json and errors.md.",
)  # fmt: skip
def errors(clients: tuple[str, ...], kafka: str, directory: Path) -> Exit:
    """Answer clients errors that their broker did not give, and say what each does.

    One run for each client, in which the tap answers one request after the other with an error. A
    member that ends is started again. Where a client does something else than Kafka's own, its
    cell is bold.
    """
    check_release(kafka)
    candidates = candidates_of(clients)
    runs, console = {one: experiment(one, kafka) for one in candidates}, Console()
    seed, options = secrets.randbelow(BIG_SEED), ("--no-report",)
    folder, _, record, code = carry_out(runs, "errors", directory, seed, options, console)
    of = {run["experiment"]: folder / run["folder"] for run in record["runs"]
          if run["exit_code"] == Exit.PASS}  # fmt: skip
    found = {one.name: read(of[runs[one].name]) for one in candidates if runs[one].name in of}
    about = {one.name: one.about for one in candidates}
    as_json = {name: [asdict(cell) for cell in cells] for name, cells in found.items()}
    (folder / "errors.json").write_text(json.dumps(as_json, indent=2) + "\n", encoding="utf-8")
    page, text = folder / "errors.md", markdown(found, about, kafka)
    page.write_text(text, encoding="utf-8")
    console.result(*text.splitlines(), f"page: {page}")
    if code in (Exit.ABORTED, Exit.NOT_HEALED):
        return code
    return Exit.PASS if len(found) == len(candidates) and all(found.values()) else Exit.UNKNOWN


def markdown(found: Mapping[str, Sequence[Did]], about: Mapping[str, str], kafka: str) -> str:
    """Return what clients did as a table for each API; what Kafka's own does not do is bold."""
    names = sorted(found, key=lambda name: name != KAFKAS_OWN)
    did = {(name, one.api, one.error): one.does for name in names for one in found[name]}
    lines = [f"Kafka {kafka}; {'; '.join(f'{name}: {about[name]}' for name in names)}.", ""]
    for api, of_api in CELLS.items():
        lines += [f"### {api}", "", f"| error | {' | '.join(names)} |"]
        lines.append("|---" * (len(names) + 1) + "|")
        for error in of_api:
            own = did.get((KAFKAS_OWN, api, error))
            row = [did.get((name, api, error), "not seen") for name in names]
            row = [text if text in (own, "not seen") or own is None else f"**{text}**"
                   for text in row]  # fmt: skip
            lines.append(f"| `{error}` | {' | '.join(row)} |")
        lines.append("")
    return "\n".join(lines)
