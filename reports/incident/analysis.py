"""From brokers' own logs, without a run folder, to the tables, JSON and page of an incident.

Two engines read the lines, by the same functions (`rows`): `small` in this process, and
`stock_logs` on Spark. They map over splits, bring together the lines of each key, and store rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import msgspec

from reports.incident import page
from reports.incident.lines.form import Form, recognised
from reports.incident.log_files import leave, log_files, owners
from reports.incident.refusals import refusal
from reports.incident.rows import joined
from reports.incident.summary import summary
from reports.judgement.errors import EvidenceError

if TYPE_CHECKING:
    from reports.incident.small import Small
    from reports.incident.stock_logs import OnSpark

Json = dict[str, Any]
Progress = Callable[[str], None]
FILES = ("incident.json", "incident.html")


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
    engine: "Small | OnSpark", asked: Asked, output: str, *, progress: Progress = lambda _: None
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
    engine: "Small | OnSpark", asked: Asked, *, progress: Progress = lambda _: None
) -> tuple[Json, Sequence[Json]]:
    """Return the content of `incident.json`, and the rebalances that are drawn."""
    forms: dict[str, tuple[Form, str]] = {}

    def recognise(file: str, head: Sequence[str]) -> Form:
        form = recognised(head, asked.pattern)
        if head:
            forms[file] = form, head[0]
        return form

    progress("reading the lines")
    engine.read(recognise, asked.zone)
    files = log_files(engine.names, forms, engine.first("splits"))
    rejected = [*_numbered(engine.first("rejected"), files)]
    if why := refusal(files, rejected, asked.cluster):
        raise EvidenceError(why)
    progress("telling what happened to each group")
    engine.tell(owners(files, asked.cluster), asked.session_ms)
    known = joined(engine.first("abouts"))
    for file in files:
        file["copies"] = known["doubled"][file["path"]]
        if asked.cluster:
            leave(file, asked.cluster, known["files"])
    return summary(files, known, rejected, str(asked.zone)), engine.first("rebalances")


def _numbered(rejected: Iterable[Json], files: Sequence[Json]) -> Iterator[Json]:
    """Name the file of rejected lines, and their numbers in it."""
    by_path = {file["path"]: file for file in files}
    for row in rejected:
        file = by_path[row["file"]]
        number = file["first_lines"][row["start"]] + row["place"] + 1
        yield {"file": file["name"], "number": number, "why": row["why"], "line": row["line"]}
