"""Where an experiment runs: the options of `groupquake run` that name and describe a cluster."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from chaos.clusters.docker import DockerCluster
from chaos.clusters.factory import KINDS, OWN, Place
from chaos.external.cluster import ExternalCluster
from groupquake.commands.options import is_port, servers
from scenarios import Experiment

EXTERNAL = ExternalCluster.kind


@dataclass(frozen=True, slots=True)
class Where:
    """What the options say; None is a default."""

    kind: str | None
    bootstrap: str | None
    client_properties: Path | None
    allow_faults: str | None
    image: str | None
    kafka_home: Path | None
    ports: tuple[int, ...] | None
    prefix: str | None

    @property
    def settings(self) -> list[str]:
        """Return changes of an experiment that put it on the external cluster of the options."""
        changes = {
            "kind": EXTERNAL if self.kind == EXTERNAL else None,
            "bootstrap": self.bootstrap,
            "client_properties": self.client_properties and self.client_properties.resolve(),
            "prefix": self.prefix,
        }
        return [
            f"cluster.{key}={json.dumps(str(value))}" for key, value in changes.items() if value
        ]

    def place(self, experiment: Experiment) -> Place:
        """Return the place of an experiment. Raises UsageError if the options do not fit it."""
        outside = experiment.cluster.kind == EXTERNAL
        usual = DockerCluster.kind if experiment.needs_containers else OWN[0]
        kind = self.kind or (EXTERNAL if outside else usual)
        if outside and kind in OWN:
            raise click.UsageError(
                f"{experiment.name} is for an external cluster; leave out --cluster {kind}"
            )
        if kind == EXTERNAL and not experiment.cluster.bootstrap:
            raise click.UsageError(
                "cluster.bootstrap: missing; write HOST:PORT of some brokers, or give --bootstrap"
            )
        if experiment.needs_containers and kind == OWN[0]:
            first = next(each.fault for each in experiment.faults if each.about.in_containers)
            raise click.UsageError(
                f"{first} needs brokers with a network and a clock of their own, and processes"
                " share those of this machine; use --cluster docker, or leave the fault out"
            )
        count, ports = experiment.cluster.brokers, self.ports
        if ports and kind not in OWN:
            raise click.UsageError("--ports is for clusters that groupquake starts")
        if ports and not len(ports) == len(set(ports)) == count:
            raise click.UsageError(f"give --ports {count} different ports")
        for option, value, its_kind in (
            ("--image", self.image, "docker"),
            ("--kafka-home", self.kafka_home, "process"),
            ("--allow-faults", self.allow_faults, EXTERNAL),
        ):
            if value and kind != its_kind:
                raise click.UsageError(f"{option} is for --cluster {its_kind}")
        return Place(kind, self.kafka_home, self.image, ports)

    @property
    def options(self) -> list[str]:
        """The options that repeat this."""
        given = {
            "cluster": self.kind if self.kind != OWN[0] else None,
            "bootstrap": self.bootstrap,
            "client-properties": self.client_properties and self.client_properties.resolve(),
            "prefix": self.prefix,
            "allow-faults": self.allow_faults,
            "image": self.image,
            "kafka-home": self.kafka_home and self.kafka_home.resolve(),
            "ports": self.ports and ",".join(map(str, self.ports)),
        }
        return [f"--{name}={value}" for name, value in given.items() if value]


def implies_tap(experiment: Experiment) -> bool:
    """Whether only the tap can carry out its faults, or tell what its brokers answer."""
    cluster = experiment.cluster
    unseen = cluster.kind == EXTERNAL and cluster.logs in (None, "tap")
    return unseen or experiment.needs_tap


def _ports(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Read a comma-separated list of ports."""
    if text is None:
        return None
    if not all(map(is_port, text.split(","))):
        raise click.BadParameter(f"'{text}' is not a list of ports; write 9092,9093,9094")
    return tuple(map(int, text.split(",")))


def where_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a cluster, and their values as `where` (`Where`)."""

    @click.option(
        "--cluster",
        "kind",
        type=click.Choice(KINDS),
        help="Brokers as local processes, as containers of a Docker engine, or a cluster that"
        " exists (external).  [default: process, or as the experiment says]",
    )
    @click.option(
        "--bootstrap",
        metavar="HOST:PORT,…",
        callback=servers,
        help="Servers of an external cluster.",
    )
    @click.option(
        "--client-properties",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File of lines key=value with which clients reach it: TLS, SASL.",
    )
    @click.option(
        "--prefix",
        metavar="TEXT",
        help="What the names of its topics and groups begin with. [groupquake- and random letters]",
    )
    @click.option(
        "--allow-faults",
        metavar="CLUSTER_ID",
        help="Allow faults of its brokers, by the hooks of the experiment.",
    )
    @click.option(
        "--image",
        metavar="NAME",
        help="Image of the containers. [groupquake/kafka, else apache/kafka]",
    )
    @click.option(
        "--kafka-home",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Use the jars of this Kafka distribution instead of Maven's.",
    )
    @click.option(
        "--ports",
        metavar="P,P,…",
        callback=_ports,
        help="Client ports of the brokers on 127.0.0.1. [free ones]",
    )
    @wraps(command)
    def with_where(*given: Any, **others: Any) -> Any:
        where = Where(**{one.name: others.pop(one.name) for one in fields(Where)})
        return command(*given, where=where, **others)

    return with_where
