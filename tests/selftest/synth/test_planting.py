"""What is planted is found where it is planted, by the judgement of single groups."""

from collections import defaultdict
from pathlib import Path

import pytest

from reports.judgement.findings import of_group, proven_roots
from reports.judgement.recording import Recording
from selftest.synth import folder as synth_folder
from selftest.synth.folder import make
from selftest.synth.planting import KINDS
from tests.reports.alter import compared
from tests.selftest.synth.specs import spec

Place = tuple[str, str, int]


def found_in(recording: Recording, group: str) -> list[Place]:
    """Return the kind and the place of each root."""
    rows = recording.rows_by_group[group]
    tables = defaultdict(list)
    for name, row in compared(recording.context, group, rows):
        tables[name].append({"group": group, **row})
    roots = proven_roots(of_group(tables))
    return [(root.kind, root.broker, root.line) for root in roots]


def test_a_missing_line_is_found_at_the_one_place_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synth_folder, "KINDS", [one for one in KINDS if one.kind == "missing_line"])
    made = make(spec("storm", 160, 32, plant=35, seed=12), tmp_path / "run", lambda _: None)
    planted = {p["group"]: [(p["kind"], p["broker"], p["line"])] for p in made.planted}
    assert len(planted) > 25
    recording = Recording(tmp_path / "run")
    found = {group: found_in(recording, group) for group in recording.groups}
    assert {group: places for group, places in found.items() if places} == planted
