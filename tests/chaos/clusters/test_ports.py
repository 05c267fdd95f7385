import socket
from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.ports import HOST, free_ports, require_free
from chaos.clusters.process import ProcessCluster

OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_free_ports_differ_and_are_never_handed_out_to_clients() -> None:
    first, last = map(int, OUTGOING.read_text().split())
    ports = free_ports(10)
    assert len(set(ports)) == 10
    assert all(port >= 10_000 and not first <= port <= last for port in ports)
    require_free(ports)


def test_ports_lie_outside_those_of_outgoing_connections_if_any_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "ip_local_port_range"
    monkeypatch.setattr("chaos.clusters.ports._OUTGOING", setting)
    setting.write_text("1024\t60999\n")
    assert all(port > 60_999 for port in free_ports(10))
    setting.write_text("1024\t4999\n")
    assert all(port >= 10_000 for port in free_ports(10))
    setting.write_text("1024\t65535\n")
    message = "fewer than 3 free ports .* outside 1024-65535, .*; narrow net.ipv4.ip_local_port_ra"
    with pytest.raises(ClusterError, match=message):
        free_ports(3)


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
