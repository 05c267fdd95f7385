"""Roles and removals on real brokers; faults of brokers are in clusters/test_process.py."""

import re

import pytest

from chaos.cluster_view import ClusterView
from chaos.clusters.process import ProcessCluster
from chaos.errors import ChaosError
from chaos.fault_context import FaultContext
from chaos.member_evidence import is_open
from chaos.removal import static_members
from chaos.witness import Witness
from scenarios import named
from scenarios.faults.group import RemoveMembers
from tests.chaos.clusters.clients import member

pytestmark = pytest.mark.cluster

ELECTED = re.compile(r"Completed transition to Leader\(.*?, epoch=(\d+),")


@pytest.fixture(scope="module")
def cluster(brokers: ProcessCluster) -> ProcessCluster:
    return brokers


@pytest.fixture(scope="module")
def view(cluster) -> ClusterView:
    return ClusterView(cluster.bootstrap)


@pytest.fixture
def witness(cluster) -> Witness:
    return Witness({broker.id: broker.group_log for broker in cluster.brokers})


def elected(cluster) -> int:
    """The broker that was elected last to lead the metadata quorum, by its own account."""
    epochs = {
        broker.id: max(map(int, ELECTED.findall(broker.server_log.read_text())), default=-1)
        for broker in cluster.brokers
    }
    return max(epochs, key=epochs.__getitem__)


def test_a_role_that_cannot_be_found_is_an_error(view):
    with pytest.raises(ChaosError, match="partition none/0 has no leader"):
        view.leader("none", 0)
    with pytest.raises(ChaosError, match=r"no broker answers at 127\.0\.0\.1:1"):
        view.in_sync("127.0.0.1:1")


def test_roles_are_where_the_brokers_say_that_they_are(cluster, view):
    with member(cluster, "orders", "somebodys"):
        probes = view.probes()
        assert probes["group.members"]("somebodys") == 1
        assert probes["group.state"]("somebodys") == "Stable"
        logs = {broker.id: broker.group_log.read_text() for broker in cluster.brokers}
        [coordinator] = [node for node, log in logs.items() if "group somebodys" in log]
        assert view.coordinator("somebodys") == coordinator
    assert view.controller() == elected(cluster)


def test_a_static_member_is_removed_in_front_of_the_witness(cluster, stop, witness):
    with member(cluster, "orders", "removed", group_instance_id="one", client_id="one"):
        assert static_members(cluster.bootstrap, "removed") == ("one",)
        witness.poll()
        assert is_open(witness.latest("one").connection)
        context = FaultContext(named("demo"), cluster, None, None, stop).of_step("f1.1")
        keys = {"group": "removed", "instances": ["one", "ghost"], "at": "0s"}
        given = {"fault": "group.remove-members", **keys}
        [fault] = RemoveMembers.model_validate(given).aimed(context)
        fault.inject()
        found = fault.verify()
        assert found.holds, found.evidence
        assert found.evidence.endswith("one: NONE, ghost: UNKNOWN_MEMBER_ID")
