"""The client configurations of an experiment."""

import scenarios
from loadtest.client_configs import ClientConfigs, MemberConfig, ProducerConfig
from loadtest.errors import LoadtestError
from scenarios.clients import Command, kind_of


def configs_of(name: str) -> ClientConfigs:
    """Return the clients of an experiment, given as a file or a library name.

    Raises LoadtestError if it cannot be loaded.
    """
    try:
        return configs_in(scenarios.find(name))
    except scenarios.ScenarioError as error:
        raise LoadtestError("; ".join(error.args)) from error


def configs_in(experiment: scenarios.Experiment) -> ClientConfigs:
    """Return the clients of an experiment."""
    groups = {group.name: group for group in experiment.workload.groups}
    members = [
        MemberConfig(
            name=member.name,
            group=member.group,
            kind=member.kind,
            instance_id=member.instance_id,
            topics=tuple(groups[member.group].topics),
            assignor=groups[member.group].assignor,
            session_timeout_ms=groups[member.group].session_timeout_ms,
            heartbeat_interval_ms=groups[member.group].heartbeat_interval_ms,
            max_poll_interval_ms=groups[member.group].max_poll_interval_ms,
            commit_interval_ms=groups[member.group].commit_interval_ms,
            client=kind_of(member.client),
            command=member.client.command if isinstance(member.client, Command) else (),
            metadata_max_age_ms=groups[member.group].metadata_max_age_ms,
        )
        for member in experiment.members()
    ]
    producers = [
        ProducerConfig(f"producer-{number}", producer.topic, producer.rate)
        for number, producer in enumerate(experiment.workload.producers)
    ]
    return ClientConfigs(tuple(members), tuple(producers))
