"""What the command line of `groupquake run` says, as one object: the experiment, and its place."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from chaos.clusters.docker import DockerCluster
from chaos.clusters.factory import OWN, Place
from chaos.clusters.oracle import OracleCluster
from chaos.external.cluster import ExternalCluster
from chaos.plan import Plan, make_plan, read_plan
from groupquake.commands.options import resolve
from groupquake.load_workers import WorkerOptions
from reference_coordinator.classic.releases import KIP_345
from reference_coordinator.server import served
from scenarios import Experiment
from scenarios.faults import IN_CONTAINERS
from scenarios.fields import BIG_SEED

EXTERNAL = ExternalCluster.kind
RELEASE = ("kafka", "coordinator")
REPEATED = (
    "cluster", "bootstrap", "client_properties", "prefix", "allow_faults", "image", "kafka_home",
    "ports", "set_", "processes", "expect_workers", "listen", "tap", "profile", "plan",
)  # fmt: skip
"""The options that the command which repeats a run has, beside its name, release and seed."""


@dataclass(frozen=True)
class RunOptions:
    """The options by their names; None is a default. Paths are resolved."""

    name: str
    kafka: str | None
    coordinator: str | None
    set_: tuple[str, ...]
    seed: int | None
    plan: Path | None
    repeat: int
    master: str
    cluster: str | None
    bootstrap: str | None
    client_properties: Path | None
    prefix: str | None
    allow_faults: str | None
    image: str | None
    kafka_home: Path | None
    ports: str | None
    tap: bool
    profile: str | None
    keep: bool
    no_report: bool
    runs: Path
    otel: bool
    processes: int | None
    expect_workers: int | None
    listen: str | None
    ui: bool
    web_port: int
    attach: int | None

    @property
    def workers(self) -> WorkerOptions:
        """The workers of the load."""
        return WorkerOptions(self.processes, self.expect_workers, self.listen)

    def given(self, names: Sequence[str]) -> list[str]:
        """Return those of some options that were given, as the command line has them."""
        words = []
        for name in names:
            value, option = getattr(self, name), f"--{name.rstrip('_').replace('_', '-')}"
            if value is True:
                words.append(option)
            else:
                values = value if isinstance(value, tuple) else [value]
                words += [f"{option}={one}" for one in values if one]
        return words

    def experiment(self) -> Experiment:
        """Load the experiment, with the changes of the command line. Raises ScenarioError."""
        changes = {
            "kind": EXTERNAL if self.cluster == EXTERNAL else None,
            "bootstrap": self.bootstrap,
            "client_properties": self.client_properties,
            "prefix": self.prefix,
        }
        external = [
            f"cluster.{key}={json.dumps(str(value))}" for key, value in changes.items() if value
        ]
        return resolve(self.name, self.kafka, self.coordinator, (*self.set_, *external))

    def schedule(self, experiment: Experiment) -> Plan:
        """Return the stored plan, or one of the seed, or of a random one. Raises ScenarioError."""
        if self.plan is not None:
            plan = read_plan(self.plan, experiment)
            if self.seed not in (None, plan.seed):
                raise click.UsageError(f"the plan has seed {plan.seed}; leave out --seed")
            return plan
        drawn = secrets.randbelow(BIG_SEED) if self.seed is None else self.seed
        return make_plan(experiment, drawn)

    def place(self, experiment: Experiment) -> Place:
        """Return where an experiment runs. Raises UsageError if the options do not fit it."""
        outside = experiment.cluster.kind == EXTERNAL
        in_containers = [one.fault for one in experiment.faults if one.needs in IN_CONTAINERS]
        usual = DockerCluster.kind if in_containers else OWN[0]
        if experiment.never_shipped:
            usual = OracleCluster.kind  # no other has these rules
        kind = self.cluster or (EXTERNAL if outside else usual)
        if outside and kind in OWN:
            raise click.UsageError(
                f"{experiment.name} is for an external cluster; leave out --cluster {kind}"
            )
        if kind == EXTERNAL and not experiment.cluster.bootstrap:
            raise click.UsageError(
                "cluster.bootstrap: missing; write HOST:PORT of some brokers, or give --bootstrap"
            )
        if experiment.never_shipped and kind not in (OracleCluster.kind, EXTERNAL):
            raise click.UsageError(
                f"no Kafka has the rules {experiment.judge}; use --cluster oracle, or a release's"
                " rules: --set judge=release"
            )
        if in_containers and kind == OWN[0]:
            raise click.UsageError(
                f"{in_containers[0]} needs brokers with a network and a clock of their own,"
                " and processes share those of this machine; use --cluster docker, or leave the"
                " fault out"
            )
        count = experiment.cluster.brokers
        ports = tuple(map(int, self.ports.split(","))) if self.ports else None
        if ports and kind not in OWN:
            raise click.UsageError("--ports is for clusters that groupquake starts")
        if ports and not len(ports) == len({*ports}) == count:
            raise click.UsageError(f"give --ports {count} different ports")
        for name, its_kind in (
            ("image", "docker"), ("kafka_home", "process"), ("allow_faults", EXTERNAL)
        ):  # fmt: skip
            if getattr(self, name) and kind != its_kind:
                option = name.replace("_", "-")
                raise click.UsageError(f"--{option} is for --cluster {its_kind}")
        profile = None
        if kind == OracleCluster.kind:
            self._check_oracle(experiment)
            profile = self._served(experiment)
        return Place(kind, self.kafka_home, self.image, ports, profile)

    @staticmethod
    def _check_oracle(experiment: Experiment) -> None:
        """Raise UsageError for what the served oracle does not have."""
        lacking = [one.fault for one in experiment.faults if one.needs not in (None, "tap")]
        if lacking:
            raise click.UsageError(
                f"{lacking[0]} needs brokers with a disk, a network or a clock of their own, which"
                " the oracle lacks; use --cluster docker or process, or leave the fault out"
            )

    def _served(self, experiment: Experiment) -> str:
        """Return the rules that the oracle serves, by name: by default those of the release."""
        release = f"{experiment.cluster.version}-{experiment.coordinator}"
        promised = f"{KIP_345.name}-{release}" if self.profile == KIP_345.name else None
        name = promised or self.profile or release
        try:
            served(name)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        return name

    def has_tap(self, experiment: Experiment) -> bool:
        """Whether members use the tap: if it is asked for, or if there is no other way.

        Some faults only the tap can carry out, and without a broker's logs it alone tells answers.
        Raises UsageError for a fault that no tap sees.
        """
        cluster = experiment.cluster
        unseen = cluster.kind == EXTERNAL and cluster.logs in (None, "tap")
        taps = self.tap or unseen or "tap" in experiment.needs
        if taps and "group.configure" in [one.fault for one in experiment.faults]:
            raise click.UsageError("group.configure is not seen by the tap; leave either out")
        return taps

    def require_page_alone(self) -> None:
        """Raise UsageError for options that --ui cannot have beside it."""
        for given, options, why in (
            (self.processes or self.expect_workers, "--processes and --expect-workers",
             "whose own process runs all members"),
            (self.keep, "--keep", "which may start several runs"),
            (self.plan or self.repeat > 1, "--plan and --repeat", "where seeds are chosen"),
            (self.no_report, "--no-report", "which shows the verdict"),
        ):  # fmt: skip
            if given:
                raise click.UsageError(f"{options} cannot be used with --ui, {why}")
