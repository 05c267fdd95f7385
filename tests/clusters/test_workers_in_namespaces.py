"""A run of many parts: workers in network namespaces, brokers in containers, Spark on a cluster."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from chaos.clusters.ports import free_ports
from tests.clusters.conftest import Report
from tests.clusters.standalone import Standalone
from tests.groupquake.conftest import arguments
from tests.groupquake.test_workers import lines, workers_of

pytestmark = [pytest.mark.long, pytest.mark.docker, pytest.mark.spark]

RELAY = Path(__file__).with_name("relay.py")


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True)


@contextmanager
def relay(here: str, there: str, port: int, within: tuple[str, ...] = ()) -> Iterator[None]:
    """Hand on what comes to a port of `here`."""
    command = [*within, sys.executable, str(RELAY), here, there, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"listening\n"
            yield
        finally:
            process.kill()


@contextmanager
def namespace(number: int, port: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A network namespace with a cable to this machine, whose 127.0.0.1 has the brokers' port.

    Yields this end's address, and what a command line in the namespace begins with.
    """
    name, here = f"gq-{os.getpid()}-{number}", f"10.231.{number}.1"
    cable = f"gq{os.getpid() % 100_000}-{number}"
    within = ("ip", "netns", "exec", name)
    ip(f"netns add {name}")
    with ExitStack() as made:
        made.callback(ip, f"netns delete {name}")
        ip(f"link add {cable} type veth peer name eth0 netns {name}")
        ip(f"address add {here}/24 dev {cable}")
        ip(f"link set {cable} up")
        ip(f"-n {name} address add 10.231.{number}.2/24 dev eth0")
        ip(f"-n {name} link set eth0 up")
        ip(f"-n {name} link set lo up")
        ip(f"-n {name} route add default via {here}")
        made.enter_context(relay(here, "127.0.0.1", port))
        made.enter_context(relay("127.0.0.1", here, port, within))
        yield here, within


@pytest.mark.usefixtures("docker_image")
def test_workers_in_two_namespaces_brokers_in_containers_and_a_spark_cluster(
    cluster: Standalone, report: Report, small: Path, tmp_path: Path
) -> None:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    [port] = free_ports(1)
    with ExitStack() as there:
        spaces = [there.enter_context(namespace(number, port)) for number in (1, 2)]
        command = arguments(
            *("run", small, "--seed", 5, "--cluster", "docker", "--ports", port, "--no-report"),
            *("--expect-workers", 2, "--listen", spaces[0][0]),
        )
        process = there.enter_context(
            subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        )
        there.callback(process.kill)
        assert process.stderr is not None
        while not (shown := re.search(r": locust (-f .+)", process.stderr.readline())):
            assert process.poll() is None
        workers = []
        for number, (_, within) in enumerate(spaces):
            folder = tmp_path / f"worker-{number}"
            folder.mkdir()
            log = there.enter_context((folder / "log").open("wb"))
            locust = [*within, sys.executable, "-m", "locust", *shlex.split(shown[1])]
            worker = subprocess.Popen(locust, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
            workers.append(there.enter_context(worker))
            there.callback(worker.kill)
        _, err = process.communicate(timeout=400)
        assert process.returncode == 0, err
        assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    run = tmp_path / "runs" / "latest"
    assert len({*workers_of(run).values()}) == 2
    assert [entry for entry in lines(run / "journal.jsonl") if entry["event"] == "failed"] == []
    requests = "".join(log.read_text() for log in run.glob("brokers/*/group.log"))
    assert '"JOIN_GROUP"' in requests

    done = report(run.resolve(), "--master", cluster.master)
    verdict = json.loads((run / "verdict.json").read_text())
    assert done.code == 0, (verdict["unknown_because"], verdict["findings"], done.err)
    assert verdict["groups"]["static"]["rebalances_observed"]["impact"] == 0
    assert verdict["groups"]["dynamic"]["rebalances_observed"]["impact"] in (3, 4)
