"""Policies that Kafka never shipped, judged: runs of the served oracle, and lies in them."""

import json
import lzma
import re
import shutil
from pathlib import Path

import pytest

from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.event_files.writing import event_lines
from reference_coordinator.replay import replay
from reports.judgement.recording import Recording
from selftest.mutants.judging import fails, found
from tests.recorded.logs import HERE
from tests.reference_coordinator.event_files.event_lines import header, one

GROUP = "static"
RUNS = ("batch-scaling", "hot-standby")
AGAIN = '"errorCode":27}'


def altered(target: Path, name: str, alter=lambda lines: lines, **environment) -> Recording:
    """Copy a run whose brokers' logs say something else, each with whole numbers."""
    shutil.copytree(HERE / "never-shipped" / name, target)
    about = target / "environment.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | environment))
    for log in target.glob("brokers/*/group.log.xz"):
        lines = alter(lzma.decompress(log.read_bytes()).decode().splitlines())
        text = (re.sub(r"^\d+", str(number), line) for number, line in enumerate(lines, 1))
        log.with_suffix("").write_text("\n".join(text) + "\n")
        log.unlink()
    return Recording(target)


def changed(old: str, new: str, *parts: str, nth: int = 0):
    """Return what changes the nth line with all parts."""

    def alter(lines: list[str]) -> list[str]:
        places = [n for n, line in enumerate(lines) if all(one in line for one in (old, *parts))]
        if places:
            lines[places[nth]] = lines[places[nth]].replace(old, new)
        return lines

    return alter


def without(part: str):
    """Return what takes the lines with a part out."""
    return lambda lines: [line for line in lines if part not in line]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_explained_to_its_last_line(tmp_path, name):
    recording = altered(tmp_path / name, name)
    assert found(recording, GROUP) == []


@pytest.mark.parametrize("name", RUNS)
def test_its_event_file_says_what_an_operator_asked_for(tmp_path, name):
    recording = altered(tmp_path / name, name)
    about = {"config": recording.environment["broker_config"]}
    sequence = one(event_lines(json.loads(header(group=GROUP, **about)), recording.evidence(GROUP)))
    explained = lambda rules: not replay(sequence.evidence, rules).violations
    assert explained(recording.profile)
    assert not explained(NEWEST.with_settings(sequence.settings))


@pytest.mark.parametrize("name", RUNS)
def test_no_release_explains_it(tmp_path, name):
    assert fails(altered(tmp_path / name, name, profile="4.3"), GROUP)


@pytest.mark.parametrize(
    ("name", "alter"),
    [
        # what an operator asked for is read in its line, and nowhere else
        *((name, without("INCREMENTAL_ALTER_CONFIGS")) for name in RUNS),
        # who is held back is answered, or who is called is not
        ("batch-scaling", changed('"errorCode":0', '"errorCode":40', "INCREMENTAL_ALTER")),
        ("hot-standby", changed(AGAIN, '"errorCode":0}', "HEARTBEAT", nth=-1)),
        ("hot-standby", changed('"errorCode":0}', AGAIN, "HEARTBEAT", nth=-1)),
        # for another reason, or for none
        ("batch-scaling", without("A config of the group asks for it")),
        (
            "batch-scaling",
            changed("A config of the group asks", "Leader x re-joining group during"),
        ),
    ],
)
def test_a_lie_is_found(tmp_path, name, alter):
    assert fails(altered(tmp_path / name, name, alter), GROUP)
