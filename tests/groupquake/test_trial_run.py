"""A trial of one client, on a real cluster; of others where their language is installed."""

import json
import shutil

import pytest

from groupquake.clients.adapters import Adapter

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.long]


def test_a_client_is_tried(process, tmp_path):
    wanted = "duplicate-id,rolling-bounce-static,lost-join-answer"
    done = process(
        "trial", "--client=confluent-kafka", f"--experiments={wanted}", "--seed=1",
        f"--trials={tmp_path / 'trials'}", "--json", "--no-comparison",
    )  # fmt: skip
    found = json.loads(done.out)
    (folder,) = (path for path in (tmp_path / "trials").iterdir() if not path.is_symlink())
    assert json.loads((folder / "trial.json").read_text()) == found
    assert (folder / "trial.md").exists()
    assert (folder / "trial.html").exists()
    client = found["clients"]["confluent-kafka"]
    assert client["why_not"] is None, done.err
    cells = {cell["experiment"]: cell for cell in client["cells"]}
    assert list(cells) == wanted.split(",")
    assert all(cell["broker"] in ("pass", "unknown") for cell in cells.values()), cells
    assert all(cell["client"] != "pass" or not cell["doubts"] for cell in cells.values())
    assert cells["rolling-bounce-static"]["rules"] == []
    assert cells["rolling-bounce-static"]["rebalances"] == 0
    (run,) = (path for path in (folder / "runs").iterdir() if not path.is_symlink())
    assert list(run.glob("tap/*/group.log")), "its answers are lost on the wire"
    assert done.code == {"pass": 0, "fail": 1, "unknown": 2}[found["verdict"]]


def test_what_a_client_does_with_errors_is_a_table(process, tmp_path):
    """librdkafka gives its member id up if that is unknown, and goes on at a new coordinator."""
    command = "clients", "errors", "--client=librdkafka-process", f"--trials={tmp_path}"
    done = process(*command, timeout_s=900)  # four minutes if the machine is idle
    assert done.code == 0, done.err
    (page,) = tmp_path.glob("2*/errors.md")
    _, _, heartbeat = page.read_text().partition("### HEARTBEAT")
    assert "| `UNKNOWN_MEMBER_ID` | joins afresh |" in heartbeat
    assert "| `NOT_COORDINATOR` | finds its coordinator again, goes on |" in heartbeat


@pytest.mark.parametrize("name", ["franz-go", "sarama", "kafkajs", "aiokafka", "kafka-python"])
def test_a_client_is_built(groupquake, name, tmp_path, monkeypatch):
    adapter = Adapter.named(name)
    if (missing := adapter.missing) is not None:
        pytest.skip(f"there is no {missing!r} here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert not adapter.is_built
    assert groupquake("clients", "build", name).code == 0
    assert adapter.is_built
    shutil.rmtree(tmp_path / "cache")
