import socket
from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.ports import HOST, free_ports, require_free
from chaos.clusters.process import ProcessCluster


def test_free_ports_differ_and_are_never_handed_out_to_clients() -> None:
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = free_ports(10)
    assert len(set(ports)) == 10
    assert all(10_000 <= port < first_outgoing for port in ports)
    require_free(ports)


def test_a_port_in_use_stops_the_start(tmp_path: Path, run_id: str) -> None:
    with socket.create_server((HOST, 0)) as listener:
        taken = listener.getsockname()[1]
        cluster = ProcessCluster(run_id, tmp_path, brokers=1, ports=[taken])
        with pytest.raises(ClusterError, match=f"port {taken} on 127.0.0.1 is in use; end"):
            cluster.start()
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_was_listened_on_is_free_again() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((HOST, port)):
            served, _ = listener.accept()
            served.close()  # our side closes first, and lingers in TIME_WAIT
    require_free([port])
