"""From brokers' own logs, without a run folder, to the tables, JSON and page of an incident.

Two engines read the lines, by the same functions (`rows`): `small` in this process, and
`stock_logs` on Spark.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Protocol

import msgspec

from reports.incident import page
from reports.incident.lines.form import Form, recognised
from reports.incident.lines.reader import SplitSummary
from reports.incident.log_files import log_files, owners
from reports.incident.refusals import refusal
from reports.incident.rows import Owners, Recognise, joined
from reports.incident.summary import summary
from reports.judgement.errors import EvidenceError

Json = dict[str, Any]
Progress = Callable[[str], None]
FILES = ("incident.json", "incident.html")


class Engine(Protocol):
    """What reads files, in this order of calls."""

    @property
    def names(self) -> Mapping[str, str]:
        """Return what people know the files by, by their URIs."""

    def read(self, recognise: Recognise, zone: tzinfo) -> Iterable[tuple[str, int, SplitSummary]]:
        """Read all lines; yield each split: its file, its begin in it, its summary."""

    def rejected(self) -> Sequence[Json]:
        """Return the first rejected lines."""

    def abouts(self, owners: Owners, session_ms: float | None) -> Iterable[bytes]:
        """Yield what the lines of each key tell."""

    def rebalances(self) -> Sequence[Json]:
        """Return the first rebalances."""

    def store(self, output: str, texts: Mapping[str, str]) -> None:
        """Write the tables, and files by their names, into the folder at a URI."""


@dataclass(frozen=True)
class Asked:
    """What is asked of logs.

    `zone` is that of times without one, `session_ms` the session of the estimate, if one is given,
    `pattern` the log4j pattern of the lines, if they are in no known form, and `cluster` the only
    one to be reported, by its id.
    """

    zone: tzinfo
    session_ms: float | None = None
    pattern: str = ""
    cluster: str = ""


def analyse(
    engine: Engine, asked: Asked, output: str, *, progress: Progress = lambda _: None
) -> Json:
    """Report the incident that some logs tell, and store it; return the content of its JSON.

    `output` is the URI of a folder. Raises EvidenceError where a place cannot be read or written,
    no line is a coordinator's that can be read, or the logs are of different clusters.
    """
    incident, rebalances = incident_of(engine, asked, progress=progress)
    progress("drawing the report")
    texts = {
        "incident.json": msgspec.json.format(msgspec.json.encode(incident)).decode() + "\n",
        "incident.html": page.render(incident, rebalances),
    }
    engine.store(output, texts)
    return incident


def incident_of(
    engine: Engine, asked: Asked, *, progress: Progress = lambda _: None
) -> tuple[Json, Sequence[Json]]:
    """Return the content of `incident.json`, and the rebalances that are drawn."""
    forms: dict[str, tuple[Form, str]] = {}

    def recognise(file: str, head: Sequence[str]) -> Form:
        form = recognised(head, asked.pattern)
        forms[file] = form, head[0] if head else ""
        return form

    progress("reading the lines")
    splits = engine.read(recognise, asked.zone)
    files = log_files(engine.names, forms, [*splits])
    rejected = [*_numbered(engine.rejected(), files)]
    if why := refusal(files, rejected, asked.cluster):
        raise EvidenceError(why)
    progress("telling what happened to each group")
    known = joined(engine.abouts(owners(files, asked.cluster), asked.session_ms))
    for file in files:
        file["copies"] = known["doubled"][file["path"]]
    return summary(files, known, rejected, str(asked.zone)), engine.rebalances()


def _numbered(rejected: Iterable[Json], files: Sequence[Json]) -> Iterator[Json]:
    """Name the file of rejected lines, and their numbers in it."""
    by_path = {file["path"]: file for file in files}
    for row in rejected:
        file = by_path[row["file"]]
        number = file["first_lines"][row["start"]] + row["place"] + 1
        yield {"file": file["name"], "number": number, "why": row["why"], "line": row["line"]}
