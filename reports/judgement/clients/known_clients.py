"""Which clients of an experiment are known to send what beside the requests that are logged.

Executors judge with what this returns; they do not have the experiment's model.
"""

from reports.judgement.missing.correlation_ids import KnownClients
from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries
from scenarios import Experiment
from scenarios.clients import kind_of
from scenarios.wire_scripts import NEEDS


def known_clients(experiment: Experiment, deliveries: Deliveries = NOTHING_HELD) -> KnownClients:
    """Return the clients of an experiment; some wire scripts ask for metadata at any time."""
    scripts = experiment.workload.wire_scripts
    groups = {group.name: group for group in experiment.workload.groups}
    members = {
        name: one for one in experiment.members() for name in (one.name, f"{one.name}.duplicate")
    }
    librdkafka = {name: one for name, one in members.items() if one.client == "librdkafka"}
    return KnownClients(
        frozenset(script for script in scripts if not NEEDS[script].grows),
        {name: float(groups[one.group].metadata_max_age_ms) for name, one in librdkafka.items()},
        {name: float(groups[one.group].heartbeat_interval_ms) for name, one in members.items()},
        {name: kind_of(one.client) for name, one in members.items()},
        deliveries,
    )
