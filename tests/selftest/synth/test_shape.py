"""The reader cannot tell synthesized logs from those of real brokers of the release."""

import lzma
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from reference_coordinator.replay import replay
from reports.judgement.recording import Recording
from selftest.lies import LIES, GroupLines
from selftest.mutants.judging import fails
from selftest.mutants.synthesized_run import SynthesizedRun
from selftest.synth.folder import make
from selftest.synth.spec import MIXES
from tests.recorded.logs import RECORDINGS
from tests.reports.judged_here import judged_here
from tests.selftest.synth.shape import Shape, read, spec

RECORDED = RECORDINGS["kafka-4.3.0"].folder


def real_logs() -> list[tuple[str, list[str]]]:
    """Return the recorded logs of the release, by broker."""
    logs = [
        (log.parent.name, lzma.decompress(log.read_bytes()).decode().splitlines())
        for log in sorted(RECORDED.glob("brokers/*/group.log.xz"))
    ]
    for archive in sorted((RECORDED.parent / "seeds").glob("*.tar.xz")):
        with tarfile.open(archive) as packed:
            for entry in packed:
                if entry.name.endswith("group.log"):
                    content = packed.extractfile(entry)
                    assert content is not None
                    lines = content.read().decode().splitlines()
                    logs.append((Path(entry.name).parent.name, lines))
    return logs


@pytest.fixture(scope="module")
def real() -> Shape:
    shape = Shape()
    for broker, lines in real_logs():
        shape.add(broker, lines)
    return shape


@pytest.fixture(scope="module", params=MIXES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synth") / "run"
    make(spec(request.param, 40, 32), folder, lambda _: None)
    return folder


def logs_of(folder: Path) -> dict[str, list[str]]:
    return {
        log.parent.name: log.read_text().splitlines()
        for log in sorted(folder.glob("brokers/*/group.log"))
    }


@pytest.fixture(scope="module")
def shape(made: Path) -> Shape:
    found = Shape()
    for broker, lines in logs_of(made).items():
        found.add(broker, lines)
    return found


def test_every_line_of_a_coordinator_is_one_that_brokers_write(shape: Shape, real: Shape) -> None:
    assert shape.lines <= real.lines
    assert len({template for template, *_ in shape.lines}) > 15


def test_every_request_has_the_fields_of_a_real_one_in_its_order(shape: Shape, real: Shape) -> None:
    assert shape.requests.keys() <= real.requests.keys()
    for kind, found in shape.requests.items():
        assert found <= real.requests[kind], kind


def test_the_parts_of_a_request_s_time_add_up_as_in_real_logs(shape: Shape, real: Shape) -> None:
    assert shape.rounding_us <= real.rounding_us
    assert len(shape.rounding_us) > 1


def test_the_two_clocks_go_as_in_real_logs(made: Path) -> None:
    for lines in logs_of(made).values():
        found = [read(line) for line in lines]
        apart = [line.ms - line.nanos / 1e6 for line in found]
        assert 0.9 < max(apart) - min(apart) < 1.02  # milliseconds are cut off, not rounded


def test_serial_numbers_count_all_lines_of_a_process(made: Path) -> None:
    for lines in logs_of(made).values():
        serial = 0
        for line in map(read, lines):
            serial = 1 if line.body.endswith("] Starting up.") else serial + 1
            assert line.serial == serial


def test_every_line_is_used_and_the_oracle_explains_every_response(made: Path) -> None:
    recording = Recording(made)
    assert recording.gaps == []
    assert len(recording.lines) == sum(map(len, logs_of(made).values()))
    assert len(recording.groups) == 40
    for group in recording.groups:
        result = replay(recording.evidence(group), recording.profile)
        assert all(checked.explained for checked in result.checked), group
        assert not result.violations


def test_a_simulated_run_passes(made: Path) -> None:
    verdict = judged_here(made)
    assert verdict["findings"] == []
    assert verdict["unknown_because"] == []
    assert verdict["verdict"] == "pass"
    lines = sum(map(len, logs_of(made).values()))
    coverage = verdict["coverage"]
    assert coverage["lines_read"] == coverage["used"] == lines


def test_a_lie_in_a_simulated_log_is_found(made: Path) -> None:
    recording = Recording(made)
    for name in ("stabilized_one_more", "later_generation", "preparing_line_twice"):
        group = recording.groups[0]
        log = GroupLines(recording, group)
        lines = LIES[name].tell(log)
        assert lines is not None
        lie = SynthesizedRun(made, recording, group, tuple(lines), log.fenced)
        assert fails(lie, group), name


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    texts = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        make(spec("storm", 8, 32, seed=seed), tmp_path / name, lambda _: None)
        texts.append(logs_of(tmp_path / name))
    assert texts[0] == texts[1]
    assert all(texts[0][broker] != texts[2][broker] for broker in texts[0])


def test_members_are_deployed_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MIXES, "steady", replace(MIXES["steady"], deploy_every_ms=600_000))
    written = make(spec("steady", 2, 1_800), tmp_path / "run", lambda _: None)
    logs = [log.read_bytes() for log in tmp_path.glob("run/brokers/*/group.log")]
    assert sum(map(len, logs)) == written.bytes
    assert sum(log.count(b"\n") for log in logs) == written.lines
    recording = Recording(tmp_path / "run")
    assert recording.run.experiment.phases.impact_ms == 1_800_000
    replaced = [line for line in recording.lines if line.template == "static_replaced"]
    assert len(replaced) > 4
    for group in recording.groups:
        assert not replay(recording.evidence(group), recording.profile).violations
