"""A small run against a real broker, from the command line to its event file."""

import json
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from chaos.clusters.process import ProcessCluster
from groupquake import cli
from groupquake.fuzz import campaign
from groupquake.fuzz.judge import Verdict, judge
from groupquake.fuzz.target import CONFIG, NOT_RULES, Target, ready
from kafka_protocol.apis import COORDINATOR_APIS
from kafka_protocol.errors import Error
from kafka_protocol.versions import FIRST_JOIN_WITH_JOIN_REASON
from loadtest.wire.connection import known
from reference_coordinator.classic.releases import NEWEST
from tests.groupquake.conftest import Command, Done, run_here

Sequences = list[list[str]]
"""The lines of the event file of each sequence."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    folder = tmp_path_factory.mktemp("fuzz") / "brokers"
    with ProcessCluster("fuzz-test", folder, brokers=1, config=CONFIG) as cluster:
        yield ready("127.0.0.1", cluster.brokers[0].port, "4.3.0", "java")


@pytest.fixture(scope="module")
def fuzzed(target: Target, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Sequences]:
    """What a campaign of five sequences says and writes; five others warm the broker up."""
    folder = tmp_path_factory.mktemp("campaign")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(campaign, "WARM_UP", 5)
        groupquake = run_here(cli.cli, "groupquake", folder, patched)
        done = groupquake("dev", "fuzz", f"--at={target.host}:{target.port}", "--sequences=5")
    sequences: Sequences = []
    for line in (folder / "runs" / "latest" / "events.jsonl").read_text().splitlines():
        if '"format"' in line:
            sequences.append([])
        sequences[-1].append(line)
    return done, sequences


@pytest.mark.cluster
def test_a_target_has_the_configuration_and_versions_of_its_broker(target: Target) -> None:
    groups = {k: v for k, v in CONFIG.items() if k.startswith("group.") and k not in NOT_RULES}
    assert target.config == groups
    assert target.largest_record == CONFIG["message.max.bytes"]
    joins = known("JOIN_GROUP")[0], FIRST_JOIN_WITH_JOIN_REASON - 1  # no broker has KIP-423's
    assert target.versions == {api: known(api) for api in COORDINATOR_APIS} | {"JOIN_GROUP": joins}


@pytest.mark.cluster
def test_a_run_is_explained_and_says_what_it_covered(fuzzed: tuple[Done, Sequences]) -> None:
    done, sequences = fuzzed
    assert done.code == 0, done.err
    headers = [json.loads(header) for header, *_ in sequences]
    assert sorted(header["sequence"] for header in headers) == list(range(5))
    assert {header["kafka"] for header in headers} == {"4.3.0"}
    assert all('"end":true' in lines[-1] for lines in sequences)
    assert "5 sequences, " in done.out
    assert "5 explained, 0 unexplained, 0 unknown" in done.out
    assert "Empty -> PreparingRebalance (new_member)" in done.out
    assert "JOIN_GROUP NONE" in done.out
    assert "heartbeats_count_while_completing=false: " in done.out


@pytest.mark.cluster
def test_the_same_seed_begins_alike(target: Target) -> None:
    wanted = ((5, 3), (5, 3), (6, 3))
    with ThreadPoolExecutor(len(wanted)) as threads:  # each takes up to 12 s
        played = list(threads.map(lambda one: campaign.play(target, *one), wanted))
    first, second, another = (
        (said.client_id, said.api, said.api_version, {**said.request, "groupId": ""})
        for said in (sequence.log.exchanges[0] for sequence in played)
    )
    assert first == second
    assert another != first


@pytest.mark.cluster
def test_an_altered_response_is_unexplained(fuzzed: tuple[Done, Sequences]) -> None:
    """One error that the broker did not answer with, in one sequence after the other."""
    _, sequences = fuzzed
    rng = Random(3)
    for texts in sequences[:3]:
        lines = list(map(json.loads, texts))
        lie = rng.choice(
            [
                line
                for line in lines
                if line.get("response", {}).get("errorCode")
                in (0, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS,
                    Error.FENCED_INSTANCE_ID)
            ]
        )  # fmt: skip
        joined = lie["api"] == "JOIN_GROUP"
        other = Error.COORDINATOR_NOT_AVAILABLE if joined else Error.ILLEGAL_GENERATION
        lie["response"]["errorCode"] = other
        text = "".join(json.dumps(line) + "\n" for line in lines)
        assert judge(text, NEWEST).verdict is not Verdict.EXPLAINED


NOT_FUZZED = (
    ("--at=nowhere", 64, "'nowhere' is not an address; write 127.0.0.1:9092"),
    ("--kafka=1.0.0", 64, "the oracle has no rules for Kafka 1.0.0"),
    ("--coordinator=scala", 64, "no rules for Kafka 4.3.0 with coordinator scala"),
    ("--at=127.0.0.1:1", 69, "no broker answers at 127.0.0.1:1"),
)


def test_what_cannot_be_fuzzed_is_one_error_line(groupquake: Command) -> None:
    for option, code, error in NOT_FUZZED:
        done = groupquake("dev", "fuzz", option)
        assert (done.code, error in done.err) == (code, True)
