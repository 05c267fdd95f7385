"""`groupquake doctor`: what a cluster allows, and what each missing thing costs in evidence.

Nothing of it is changed by looking.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
import yaml
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import ClusterAuthorizationFailedError, KafkaError

from chaos.clusters.releases import release_of
from chaos.errors import ChaosError
from groupquake.access import NEEDED, Right, connected, is_allowed
from groupquake.commands.options import json_option, servers
from groupquake.console import Console
from groupquake.exits import Exit, NotAuthorizedError
from groupquake.external import PROTOCOLS, coordinator_of, settings_of
from kafka_protocol.releases import number
from kafka_protocol.request_log import LOGGER
from scenarios.client_properties import KEYS, read_checked
from scenarios.releases import SUPPORTED_LINES

COORDINATOR_LOGGERS = {
    "java": "org.apache.kafka.coordinator.group",
    "scala": "kafka.coordinator.group",
}
SHIPPED_LEVELS = {LOGGER: "WARN", **dict.fromkeys(COORDINATOR_LOGGERS.values(), "INFO")}
"""The levels of loggers as Kafka ships them."""
TRIAL = "groupquake-doctor"
"""A name that nothing is created under: brokers are asked what they would allow."""
_CLUSTER = {
    "DESCRIBE": "groups of other users are not listed, so that a taken name may go unseen",
    "DESCRIBE_CONFIGS": "the brokers' settings are assumed, and a difference proves nothing; "
    "loggers are not seen",
    "ALTER_CONFIGS": "loggers cannot be switched on from here (--switch-on)",
}

_LOGGER_COSTS = "the brokers' own lines; the tap shows requests and responses (level wire)"
_LOGGER_GET = "put what --log4j prints into the brokers' log4j file, then doctor --switch-on"

_DONE = "OK"
"""What kafka-python returns for a change that was made."""

State = Literal["yes", "no", "not known"]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a run would use, or even needs: what its absence costs, and how to get it."""

    what: str
    state: State
    costs: str
    get: str
    is_needed: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found. `releases` are by broker id, `loggers` levels by broker id and logger."""

    cluster_id: str
    brokers: Mapping[int, str]
    releases: Mapping[int, str]
    coordinator: str | None
    protocols: str | None
    settings: Mapping[str, str]
    loggers: Mapping[int, Mapping[str, str]]
    items: Sequence[Item] = field(default_factory=list)

    @property
    def refused(self) -> list[str]:
        """What a run needs and does not get; if there is none, a run is possible."""
        return [item.what for item in self.items if item.is_needed and item.state == "no"]

    @property
    def evidence(self) -> str:
        """The level of evidence that its logs give as they are."""
        on = [levels.get(LOGGER) in ("DEBUG", "TRACE") for levels in self.loggers.values()]
        return "requests" if on and all(on) else "wire"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {**asdict(self), "evidence": self.evidence, "can_run": not self.refused}


def examine(client: KafkaAdminClient, prefix: str = "") -> Diagnosis:
    """Ask a cluster what it allows for names with a prefix. Raises KafkaError without an answer."""
    trial = prefix + TRIAL
    asked = partial(_item, client, prefix or TRIAL.partition("-")[0] + "-")
    cluster = client.describe_cluster()
    brokers = {one["broker_id"]: f"{one['host']}:{one['port']}" for one in cluster["brokers"]}
    releases = {
        node: ".".join(map(str, client.get_broker_version_data(node).broker_version))
        for node in brokers
    }
    first = next(iter(brokers))
    settings = _or(lambda: settings_of(client, first), {})
    loggers = {node: _or(partial(loggers_of, client, node), {}) for node in brokers}
    kind = coordinator_of(_whole(min(releases.values())), settings)
    items = [
        *(asked(Right(name, "cluster"), costs) for name, costs in _CLUSTER.items()),
        *(
            asked(Right(name, of, trial), "no run is possible", is_needed=True)
            for of, names in NEEDED.items()
            for name in names
        ),
        asked(Right("ALTER", "topic", trial), "topic.add-partitions is not possible"),
        *_logging(loggers, kind),
    ]
    return Diagnosis(
        cluster["cluster_id"], brokers, releases, kind, settings.get(PROTOCOLS), settings, loggers,
        items,
    )  # fmt: skip


def loggers_of(client: KafkaAdminClient, broker: int) -> dict[str, str]:
    """Return the levels of a broker's loggers that matter (KIP-412). Raises KafkaError."""
    resource = ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker))
    answer = client.describe_configs([resource], config_filter="all")
    found: dict[str, dict[str, Any]] = next(iter(answer.values()))[str(broker)]
    wanted = (LOGGER, *COORDINATOR_LOGGERS.values())
    return {name: str(found[name]["value"]) for name in wanted if name in found}


def switch(client: KafkaAdminClient, diagnosis: Diagnosis, *, on: bool) -> None:
    """Set the levels of the loggers of every broker (KIP-412).

    Raises NotAuthorizedError if ACLs refuse it, and ChaosError if a broker does for another reason.
    kafka-python returns what a broker refuses as a text, and raises nothing.
    """
    configs = {
        name: (AlterConfigOp.SET, "DEBUG" if on else SHIPPED_LEVELS[name])
        for name in _loggers_of(diagnosis.coordinator)
    }
    for node in diagnosis.brokers:
        resource = ConfigResource(ConfigResourceType.BROKER_LOGGER, str(node), configs)
        answer = client.alter_configs([resource], raise_on_unknown=False, incremental=True)
        said = next(iter(answer.values()))[str(node)]
        if ClusterAuthorizationFailedError.__name__ in said:
            raise NotAuthorizedError(
                f"the loggers of broker {node} cannot be switched ({said}); it needs ALTER_CONFIGS"
                " of the cluster"
            )
        if said != _DONE:
            raise ChaosError(f"the loggers of broker {node} cannot be switched ({said})")


def snippet(kafka: str) -> str:
    """Return what writes `group.log` beside the brokers' other logs, for their log4j file.

    It is what our own brokers of that release have, without what these write to `server.log`.
    Raises UnsupportedError for a release that is too old.
    """
    newest = SUPPORTED_LINES[-1].first  # later ones are taken for it
    major, minor = min(number(kafka)[:2], newest)
    template = release_of(f"{major}.{minor}.0").logging
    made = (_log4j_2 if (major, minor) == newest else _log4j_1)(template.read_text())
    return made.replace("${groupquake.folder}", "${kafka.logs.dir}")


_GROUP_LINES = re.compile(
    r"log4j\.(logger|additivity)\.(kafka\.|org\.apache\.kafka\.)|log4j\.appender\.group\b"
)
"""What the logging file of our own brokers has about `group.log`, in lines of log4j 1."""
_LOG4J_1_HEAD = (
    "# into the brokers' log4j.properties; the log is in UTC: start them with -Duser.timezone=UTC"
)
_LOG4J_2_HEAD = """\
# log4j2.yaml of the brokers: append this entry to Configuration.Appenders.File, and these to
# Configuration.Loggers.Logger; add a list that is not there, and replace a logger of the same name
"""
_FILE, _ROLLING = "org.apache.log4j.FileAppender", "org.apache.log4j.RollingFileAppender"
_ROLLS = """\
log4j.appender.group.MaxFileSize=100MB
log4j.appender.group.MaxBackupIndex=20"""


def _log4j_1(template: str) -> str:
    lines = [line for line in template.splitlines() if _GROUP_LINES.match(line)]
    text = "\n".join([_LOG4J_1_HEAD, *lines, _ROLLS])
    return text.replace(_FILE, _ROLLING).replace("=INFO, server", "=INFO")


def _log4j_2(template: str) -> str:
    """Lines that go to our `server.log`, too, go on to the brokers' own appenders."""
    own = yaml.safe_load(template)["Configuration"]
    loggers = own["Loggers"]["Logger"]
    for logger in loggers:
        refs = logger.get("AppenderRef", [])
        if any(to["ref"] == "server" for to in refs):
            logger["AppenderRef"] = [to for to in refs if to["ref"] == "group"]
            del logger["additivity"]
    appenders = [one for one in own["Appenders"]["File"] if one["name"] == "group"]
    parts = {"Appenders": {"File": appenders}, "Loggers": {"Logger": loggers}}
    text: str = yaml.safe_dump(parts, sort_keys=False, width=200).rstrip("\n")
    return _LOG4J_2_HEAD + text.replace("sys:groupquake.folder", "sys:kafka.logs.dir")


def _or(ask: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return ask()
    except (KafkaError, KeyError, StopIteration):
        return otherwise


def _item(
    client: KafkaAdminClient, prefix: str, right: Right, costs: str, *, is_needed: bool = False
) -> Item:
    """Ask for a right; nothing is made."""
    states: Mapping[bool | None, State] = {True: "yes", False: "no", None: "not known"}
    what = f"{right.of}s called {right.name}…" if right.name else right.of
    state = states[_or(partial(is_allowed, client, right), None)]
    if is_needed and state == "not known":
        costs = "nothing, if it is allowed; if not, a run ends before it makes anything"
    operation = right.operation.replace("_", " ").title().replace(" ", "")
    of = f"--{right.of} {prefix} --resource-pattern-type prefixed" if right.name else "--cluster"
    get = f"kafka-acls --add --allow-principal User:NAME --operation {operation} {of}"
    return Item(f"{right.operation} of {what}", state, costs, get, is_needed)


def _logging(loggers: Mapping[int, Mapping[str, str]], kind: str | None) -> Iterator[Item]:
    """Yield an item for each logger and state, with the brokers that it is so of."""
    for name in _loggers_of(kind):
        brokers: dict[State, list[int]] = {}
        for node, levels in loggers.items():
            level = levels.get(name)
            state: State = "not known" if level is None else "yes" if level == "DEBUG" else "no"
            brokers.setdefault(state, []).append(node)
        for state, nodes in brokers.items():
            noun = "brokers" if len(nodes) > 1 else "broker"
            what = f"{name} of {noun} {', '.join(map(str, nodes))} at DEBUG"
            yield Item(what, state, _LOGGER_COSTS, _LOGGER_GET)


def _loggers_of(kind: str | None) -> list[str]:
    """Return the loggers of requests, and of a kind of coordinator or of both."""
    return [LOGGER, *(name for key, name in COORDINATOR_LOGGERS.items() if kind in (None, key))]


def _whole(release: str) -> str:
    return f"{release}.0" if release.count(".") == 1 else release


@click.command(
    epilog=f"Exit codes: 0 a run is possible; {Exit.NOT_AUTHORIZED:d} the user is not let in,"
    f" or ACLs refuse what a run needs, or the switch; {Exit.USAGE:d} bad usage or file;"
    f" {Exit.UNAVAILABLE:d} no answer from the cluster."
)
@click.option("--bootstrap", required=True, metavar="HOST:PORT,…", type=servers, help="Servers.")
@click.option(
    "--client-properties", type=click.Path(dir_okay=False, path_type=Path),
    help=f"File of lines key=value for TLS and SASL: {', '.join(KEYS)}.",
)  # fmt: skip
@click.option(
    "--switch-on/--switch-off", "on", default=None,
    help="Set the brokers' loggers of groups and requests to DEBUG, or back to what Kafka ships.",
)  # fmt: skip
@click.option(
    "--log4j", is_flag=True, help="Print what writes group.log, for the brokers' log4j file."
)
@click.option(
    "--prefix", default="", metavar="TEXT", help="Ask about names with this cluster.prefix."
)
@json_option
def doctor(
    bootstrap: str, client_properties: Path | None, prefix: str, *, on: bool | None, log4j: bool
) -> Exit:
    """Tell what your cluster allows: releases, ACLs, loggers, and what is missing.

    Nothing is created. --switch-on changes the levels of loggers alone; lines go where the
    brokers' log4j file sends them: put what --log4j prints there first, and restart the brokers.
    """
    if log4j and Console().as_json:
        raise click.UsageError("--log4j prints what is no JSON; leave out --json")
    properties = read_checked(client_properties)
    with connected(bootstrap, properties) as client:
        found = examine(client, prefix)
        if on is not None:
            switch(client, found, on=on)
            found = examine(client, prefix)
    if log4j:
        Console.result(*snippet(min(found.releases.values())).split("\n"))
    else:
        Console().answer(found.as_json(), *_lines(found))
    return Exit.NOT_AUTHORIZED if found.refused else Exit.PASS


def _lines(found: Diagnosis) -> list[str]:
    """What is possible comes first, then what was found, then what each missing thing costs."""
    if found.refused:
        first = f"no run is possible: not allowed: {', '.join(found.refused)}"
    elif found.evidence == "requests":
        first = "a run is possible; for all evidence give the brokers' log folder as cluster.logs"
    else:
        first = "a run is possible, judged by what passes through the tap (level wire)"
    lines = [first, f"cluster {found.cluster_id}"]
    lines += [
        f"  broker {node} at {address}: offers what Kafka {found.releases[node]} does"
        for node, address in found.brokers.items()
    ]
    lines.append(f"  group coordinator: {found.coordinator or 'not known; --coordinator tells it'}")
    lines.append(f"  group protocols: {found.protocols or 'not known'}")
    lines += [f"  {item.state:9}  {item.what}" for item in found.items]
    missing: dict[tuple[str, str], list[str]] = {}
    for item in found.items:
        if item.state != "yes":
            missing.setdefault((item.costs, item.get), []).append(item.what)
    for (costs, get), what in missing.items():
        lines += [f"without {'; '.join(what)}", f"  costs: {costs}", f"  to get it: {get}"]
    return lines
