"""Why nothing can be reported: what is known of files in; one sentence out, true and of use.

It says what was found, where the first line of it is, and what would be read instead.
"""

from collections.abc import Mapping, Sequence
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
SERVER_LOG = "give the server.log, at level INFO, or the output of the groups' brokers"
OR_PATTERN = ", or the form of the lines with --pattern"
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
    damage = [f"{file['name']}: {file['damage']}" for file in files if file["damage"]][:NAMED]
    has_lines = any(file["lines"] for file in files)
    return "; ".join([_unread(files, rejected), *damage] if has_lines or not damage else damage)


def _unread(files: Sequence[Json], rejected: Sequence[Json]) -> str:
    first = (
        f"; the first is {rejected[0]['file']}:{rejected[0]['number']}, {rejected[0]['why']}:"
        f" {_short(rejected[0]['line'])}"
        if rejected
        else ""
    )
    others = {group: of for file in files for group, of in file["others"].items()}
    if others and all(OTHER_PROTOCOL in row["why"] for row in rejected):
        named = ", ".join(
            f"{group} ({of} protocol)" for group, of in sorted(others.items())[:NAMED]
        )
        return (
            f"no line is about a classic group: {counted(len(others), 'group')} of other protocols"
            f" (KIP-848, KIP-932, KIP-1071), which are not reported: {named}{first}"
        )
    if rejected:
        count = counted(sum(file["statuses"][REJECTED] for file in files), "line")
        give = what_to_do(rejected[0]["why"])
        return f"{count} of a group coordinator, none of which can be read{first}; {give}"
    give = SERVER_LOG + OR_PATTERN
    lines, file = sum(one["lines"] for one in files), max(files, key=lambda one: one["lines"])
    if not lines:
        return f"{', '.join(one['name'] for one in files[:NAMED])}: no line; {SERVER_LOG}"
    if of_client := next((one for one in files if one["client"] and not one["broker"]), None):
        what, file, give = "a client's log, not a broker's", of_client, SERVER_LOG
    elif any(one["timed"] or one["broker"] for one in files):
        what = f"none of {lines:,} lines is a group coordinator's"
    else:
        what = "nothing of Kafka: no line has a time, and none is a coordinator's"
    begins = f" (it begins: {_short(file['opening'])})" if file["opening"].strip() else ""
    return f"{file['name']}: {what}{begins}; {give}"


def _short(line: str) -> str:
    line = line.replace("\0", "").strip()
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def _of_clusters(files: Sequence[Json], cluster: str) -> str:
    where = {mark[-1]: file["name"] for file in reversed(files) for mark in file["clusters"]}
    named = ", ".join(f"{name} ({file})" for name, file in sorted(where.items())[:NAMED])
    if cluster and cluster not in where:
        return f"--cluster {cluster}: no file names it; they name {named or 'none'}"
    if len(where) > 1 and not cluster:
        return f"logs of different clusters: {named}; report one alone: --cluster {min(where)}"
    return ""
