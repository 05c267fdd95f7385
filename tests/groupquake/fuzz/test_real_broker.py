"""A small run against a real broker, from the command line to its event file."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from chaos.clusters.process import ProcessCluster
from groupquake.fuzz.campaign import Played, event_file, play
from groupquake.fuzz.judge import Verdict, judge
from groupquake.fuzz.target import CONFIG, NOT_RULES, Target, ready
from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import Error
from loadtest.wire.schemas import known
from reference_coordinator.classic.releases import NEWEST
from tests.groupquake.conftest import Command

pytestmark = pytest.mark.cluster

PlayedBySeed = dict[tuple[int, int], Played]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    folder = tmp_path_factory.mktemp("fuzz") / "brokers"
    with ProcessCluster("fuzz-test", folder, brokers=1, config=CONFIG) as cluster:
        yield ready("127.0.0.1", cluster.brokers[0].port, "4.3.0", "java")


@pytest.fixture(scope="module")
def played(target: Target) -> PlayedBySeed:
    """Random sequences by seed and number, played at the same time: each takes up to 12 s."""
    wanted = [(5, 3), (6, 3), (2, 0), (2, 1), (2, 2)]
    with ThreadPoolExecutor(len(wanted)) as threads:
        return dict(zip(wanted, threads.map(lambda one: play(target, *one), wanted), strict=True))


def test_a_target_has_the_configuration_and_versions_of_its_broker(target: Target) -> None:
    groups = {k: v for k, v in CONFIG.items() if k.startswith("group.") and k not in NOT_RULES}
    assert target.config == groups
    assert target.largest_record == CONFIG["message.max.bytes"]
    assert target.versions == {api: known(api) for api in COORDINATOR_APIS}


def test_a_run_is_explained_and_says_what_it_covered(
    target: Target, process: Command, tmp_path: Path
) -> None:
    done = process("dev", "fuzz", f"--at={target.host}:{target.port}", "--sequences=5")
    assert done.code == 0, done.err
    events = (tmp_path / "runs" / "latest" / "events.jsonl").read_text()
    headers = [json.loads(line) for line in events.splitlines() if '"format"' in line]
    assert sorted(header["sequence"] for header in headers) == list(range(5))
    assert {header["kafka"] for header in headers} == {"4.3.0"}
    assert events.count('"end":true') == 5
    assert "5 sequences, " in done.out
    assert "5 explained, 0 unexplained, 0 unknown" in done.out
    assert "Empty -> PreparingRebalance (new_member)" in done.out
    assert "JOIN_GROUP NONE" in done.out
    assert "heartbeats_count_while_completing=false: " in done.out


def test_the_same_seed_begins_alike(target: Target, played: PlayedBySeed) -> None:
    one, other = played[5, 3], play(target, 5, 3)
    first, second, another = (
        (said.client_id, said.api, said.api_version, {**said.request, "groupId": ""})
        for said in (sequence.log.exchanges[0] for sequence in (one, other, played[6, 3]))
    )
    assert first == second
    assert another != first


def test_an_altered_response_is_unexplained(target: Target, played: PlayedBySeed) -> None:
    """One error that the broker did not answer with, in one sequence after the other."""
    rng = Random(3)
    caught = 0
    for number in range(3):
        lines = [
            json.loads(line) for line in event_file(target, played[2, number], []).splitlines()
        ]
        answered = [
            line
            for line in lines
            if line.get("response", {}).get("errorCode")
            in (0, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID)
        ]
        lie = rng.choice(answered)
        joined = lie["api"] == "JOIN_GROUP"
        other = Error.COORDINATOR_NOT_AVAILABLE if joined else Error.ILLEGAL_GENERATION
        lie["response"]["errorCode"] = other
        text = "".join(json.dumps(line) + "\n" for line in lines)
        caught += judge(text, NEWEST).verdict is not Verdict.EXPLAINED
    assert caught == 3


@pytest.mark.parametrize(
    ("options", "code", "error"),
    [
        (["--at=nowhere"], 64, "'nowhere' is not an address; write 127.0.0.1:9092"),
        (["--kafka=1.0.0"], 64, "the oracle has no rules for Kafka 1.0.0"),
        (["--coordinator=scala"], 64, "no rules for Kafka 4.3.0 with coordinator scala"),
        (["--at=127.0.0.1:1"], 69, "no broker answers at 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_fuzzed_is_one_error_line(
    options: list[str], code: int, error: str, groupquake: Command
) -> None:
    done = groupquake("dev", "fuzz", *options)
    assert (done.code, error in done.err) == (code, True)
