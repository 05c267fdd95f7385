"""Why nothing can be reported: what is known of files in; one sentence out, true and of use.

It says what was found, where the first line of it is, and what would be read instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reports.incident.lines.reader import (
    NO_DATE,
    NO_TIME,
    OTHER_PROTOCOL,
    REJECTED,
    UNKNOWN_TIME,
    USED,
)
from reports.page.wording import counted

Json = dict[str, Any]
SHOWN = 120
"""How many characters of a line a sentence has."""
NAMED = 5
"""How many groups, files and clusters it names."""
SERVER_LOG = "give the brokers' server.log, or their standard output"
_WHAT_TO_DO: Mapping[str, str] = {
    UNKNOWN_TIME: "give the form of its lines, such as --pattern '%d{ISO8601} %p %m (%c)%n'",
    NO_TIME: "give a log with times, as `--timestamps` of kubectl or `-t` of docker logs add them",
    NO_DATE: "give a log with dates, as `--timestamps` of kubectl or `-t` of docker logs add them",
    OTHER_PROTOCOL: "only classic groups are reported: there is nothing to do for lines of others",
}
"""By what is in why a line was rejected; the first counts."""
_IN_GENERAL = (
    "classic groups of Kafka 0.10 to 4.4 are read, of lines that are neither wrapped nor cut; if"
    " these are such, give the form of the lines with --pattern"
)


def what_to_do(why: str) -> str:
    """Return what helps where a line was rejected."""
    return next((to_do for part, to_do in _WHAT_TO_DO.items() if part in why), _IN_GENERAL)


def refusal(files: Sequence[Json], rejected: Sequence[Json], cluster: str) -> str:
    """Say why files cannot be reported; empty if something can be.

    `files` are those of `log_files`, `rejected` the first rejected lines, `cluster` the id of the
    one that is asked for.
    """
    if any(file["statuses"][USED] for file in files):
        return _of_clusters(files, cluster)
    damage = [f"{file['name']}: {file['damage']}" for file in files if file["damage"]]
    if damage and not any(file["lines"] for file in files):
        return "; ".join(damage[:NAMED])
    return "; ".join([next(_unread(files, rejected)), *damage[:NAMED]])


def _unread(files: Sequence[Json], rejected: Sequence[Json]) -> Iterator[str]:
    lines = sum(file["lines"] for file in files)
    others = {group: of for file in files for group, of in file["others"].items()}
    if others:
        named = ", ".join(
            f"{group} ({of} protocol)" for group, of in sorted(others.items())[:NAMED]
        )
        first = f"; {_place(rejected[0])}" if rejected else ""
        yield (
            f"no line is about a classic group: {counted(len(others), 'group')} of other protocols"
            f" (KIP-848, KIP-932, KIP-1071), which are not reported: {named}{first}"
        )
    if rejected:
        count = counted(sum(file["statuses"][REJECTED] for file in files), "line")
        yield (
            f"{count} of a group coordinator, none of which can be read; {_place(rejected[0])};"
            f" {what_to_do(rejected[0]['why'])}"
        )
    for file in files:
        if file["client"]:
            yield f"{file['name']}: a client's log, not a broker's{_opening(file)}; {SERVER_LOG}"
    if not lines:
        yield f"{', '.join(file['name'] for file in files[:NAMED])}: no line; {SERVER_LOG}"
    file = max(files, key=lambda file: file["lines"])
    if any(one["timed"] for one in files):
        yield (
            f"none of {lines:,} lines is a group coordinator's{_opening(file)}; give the"
            " server.log, at level INFO, of the brokers that coordinate the groups, or the form of"
            " the lines with --pattern"
        )
    yield (
        f"{file['name']}: nothing of Kafka: no line is recognised as a broker's{_opening(file)};"
        f" {SERVER_LOG}, or the form of the lines with --pattern"
    )


def _place(rejected: Json) -> str:
    """Say where a rejected line is, why it is, and how it begins."""
    return (
        f"the first is {rejected['file']}:{rejected['number']}, {rejected['why']}:"
        f" {_short(rejected['line'])}"
    )


def _opening(file: Json) -> str:
    return f" (it begins: {_short(file['opening'])})" if file["opening"].strip() else ""


def _short(line: str) -> str:
    line = line.replace("\0", "").strip()
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def _of_clusters(files: Sequence[Json], cluster: str) -> str:
    where: dict[str, list[str]] = {}
    for file in files:
        for _, _, _, name in file["clusters"]:
            where.setdefault(name, []).append(file["name"])
    named = ", ".join(f"{name} ({names[0]})" for name, names in sorted(where.items())[:NAMED])
    if cluster and cluster not in where:
        return f"--cluster {cluster}: no file names it; they name {named or 'none'}"
    if len(where) > 1 and not cluster:
        return f"logs of different clusters: {named}; report one alone: --cluster {min(where)}"
    return ""
