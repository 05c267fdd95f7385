"""Which clients of an experiment are known to send what beside the requests that are logged.

Executors judge with what this returns; they do not have the experiment's model.
"""

from reports.judgement.correlation_ids import KnownClients
from scenarios import Experiment
from scenarios.wire_scripts import NEEDS


def known_clients(experiment: Experiment) -> KnownClients:
    """Return the clients of an experiment; some wire scripts ask for metadata at any time."""
    scripts = experiment.workload.wire_scripts
    members = [one for one in experiment.members() if one.client == "librdkafka"]
    groups = {group.name: group for group in experiment.workload.groups}
    age_ms = {
        name: float(groups[one.group].metadata_max_age_ms)
        for one in members
        for name in (one.name, f"{one.name}.duplicate")
    }
    return KnownClients(
        frozenset(script for script in scripts if not NEEDS[script].grows),
        age_ms,
        {one.name: groups[one.group].heartbeat_interval_ms for one in members},
        {
            name: one.client
            for one in experiment.members()
            for name in (one.name, f"{one.name}.duplicate")
        },
    )
