"""`groupquake doctor`: what a cluster allows, and what each missing thing costs in evidence."""

from pathlib import Path

import click

from groupquake.access import connected
from groupquake.commands.options import servers
from groupquake.console import Console, json_lines
from groupquake.doctor import Diagnosis, examine, snippet, switch
from groupquake.exits import Exit
from scenarios.client_properties import KEYS, read_checked


@click.command(
    epilog=f"Exit codes: 0 a run is possible; {Exit.NOT_AUTHORIZED:d} the user is not let in,"
    f" or ACLs refuse what a run needs, or the switch; {Exit.USAGE:d} bad usage or file;"
    f" {Exit.UNAVAILABLE:d} no answer from the cluster."
)
@click.option(
    "--bootstrap", required=True, metavar="HOST:PORT,…", callback=servers, help="Servers."
)
@click.option(
    "--client-properties",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"File of lines key=value for TLS and SASL: {', '.join(KEYS)}.",
)
@click.option(
    "--switch-on/--switch-off",
    "on",
    default=None,
    help="Set the brokers' loggers of groups and requests to DEBUG, or back to what Kafka ships.",
)
@click.option(
    "--log4j", is_flag=True, help="Print what writes group.log, for the brokers' log4j file."
)
@click.option(
    "--prefix", default="", metavar="TEXT", help="Ask about names with this cluster.prefix."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def doctor(
    bootstrap: str,
    client_properties: Path | None,
    prefix: str,
    *,
    on: bool | None,
    log4j: bool,
    as_json: bool,
) -> Exit:
    """Tell what a cluster of yours allows: releases, ACLs, loggers, and what is missing.

    Nothing is created. --switch-on changes the levels of loggers alone; lines go where the
    brokers' log4j file sends them: put what --log4j prints there first, and restart the brokers.
    """
    properties = read_checked(client_properties)
    with connected(bootstrap, properties) as client:
        found = examine(client, prefix)
        if on is not None:
            switch(client, found, on=on)
            found = examine(client, prefix)
    if log4j:
        Console.result(*snippet(min(found.releases.values())).split("\n"))
    else:
        Console.result(*json_lines(found.as_json()) if as_json else _lines(found))
    return Exit.PASS if found.can_run else Exit.NOT_AUTHORIZED


def _lines(found: Diagnosis) -> list[str]:
    lines = [f"cluster {found.cluster_id}"]
    lines += [
        f"  broker {node} at {address}: offers what Kafka {found.releases[node]} does"
        for node, address in found.brokers.items()
    ]
    lines.append(f"  group coordinator: {found.coordinator or 'not known; --coordinator tells it'}")
    lines.append(f"  group protocols: {found.protocols or 'not known'}")
    for item in found.items:
        cost = "" if item.state == "yes" else f": {item.costs}"
        lines.append(f"  {item.state:9}  {item.what}{cost}")
    if found.evidence == "wire":
        lines.append(
            "evidence: through the tap (level wire); for the brokers' own lines, put what --log4j"
            " prints into their log4j file, and give its folder as cluster.logs"
        )
    else:
        lines.append("evidence: the loggers are on; give their folder as cluster.logs")
    return lines
