"""What the benchmarks compute from what they measure."""

import json
from collections import Counter

import pytest

from benchmarks import goals
from benchmarks.goals import lines
from benchmarks.latency import Pairs
from benchmarks.runs import errors_ms
from benchmarks.table import Line, markdown, p50, p99, quantile


def test_a_quantile_is_the_value_of_the_nearest_rank():
    for counts, share, wanted in (
        ({5.0: 1}, 0.99, 5.0),
        ({1.0: 99, 7.0: 1}, 0.99, 1.0),
        ({1.0: 98, 7.0: 2}, 0.99, 7.0),
        ({7.0: 1, 1.0: 1}, 0.5, 1.0),
        ({1.0: 1, 2.0: 2}, 0.0, 1.0),
        ({1.0: 1, 2.0: 2}, 1.0, 2.0),
    ):
        assert quantile(counts, share) == wanted
    values = [float(number) for number in range(1, 201)]
    assert (p50(values), p99(values)) == (100.0, 198.0)
    with pytest.raises(ValueError, match="no values"):
        quantile(Counter(), 0.5)


def test_a_goal_is_met_or_missed_by_so_much():
    for figure, goal, more, met in (
        (20.0, 20.0, True, "met"),
        (15.0, 20.0, True, "no, by 25%"),
        (100.0, 100.0, False, "met"),
        (150.0, 100.0, False, "no, by 50%"),
        (0, 0, False, "met"),
        (3, 0, False, "no, +3"),
        (3, None, False, ""),
    ):
        assert Line("what", "peer", figure, "", goal, more).met == met


def test_pairs_are_compared_pair_by_pair():
    """The machine was slower from pair to pair; the ratios do not show it."""
    summary = Pairs("µs", [1.5, 3.0, 6.0, 15.0], [1.0, 2.0, 4.0, 10.0]).summary()
    assert (summary["ratio_p50"], summary["ratio_quartiles"]) == (1.5, (1.5, 1.5))
    assert summary["pairs"] == 4
    spread = Pairs("µs", [1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5).summary()
    assert spread["ratio_quartiles"] == (2.0, 4.0)


def test_a_fault_is_as_late_as_its_witness_says():
    journal = [
        {"at_ms": 1_000, "event": "phase", "phase": "formation"},
        {"at_ms": 10_000, "event": "phase", "phase": "impact"},
        *({"event": "intent", "fault_id": f"f{n}.1", "target": t} for n, t in enumerate("abab", 1)),
        *({"event": "verified", "fault_id": f"f{n}.1", "verified": n != 2} for n in (1, 2, 4, 3)),
    ]
    # f1 is planned for 12,000, f2 for 12,500, f3 for 13,000 and f4 for 13,500
    history = [
        {"at_ms": 12_020.0, "event": "killed", "member": "a"},
        {"at_ms": 12_021.0, "event": "created", "member": "a"},
        {"at_ms": 12_990.0, "event": "killed", "member": "a"},
        {"at_ms": 13_507.0, "event": "killed", "member": "b"},
    ]
    assert errors_ms(journal, history) == [20.0, -10.0, 7.0]


def held(members, cpu, processes=1):
    """What members cost, as `members.hold` returns it."""
    return {
        "client": "wire", "members": members, "cpu": cpu, "per_core": members / processes / cpu,
        "memory_kb": 20.0, "hub_gap_p99_ms": 3.0, "lost": 0, "served_p99_ms": 2.0, "p50_ms": 1.0,
        "p99_ms": 5.0,
    }  # fmt: skip


def test_two_processes_hold_what_the_busiest_one_allows():
    found = {"processes": {"1": held(4_000, 0.2), "2": held(8_000, 0.25, 2)}}
    ratio, beats = lines(found)
    assert ratio.figure == pytest.approx(1.6)
    assert ratio.met == "no, by 11%"
    assert (beats.figure, beats.goal, beats.met) == (5.0, 5.0, "met")


def test_members_of_wire_are_compared_with_those_of_librdkafka():
    found = {"wire": held(10_000, 0.4), "librdkafka": held(300, 0.3) | {"lost": 1}}
    shown = {line.what: line for line in lines({"members": found})}
    ratio = shown["wire : librdkafka, members a core"]
    assert (ratio.figure, ratio.peer, ratio.met) == (25.0, "librdkafka 1,000", "met")


def test_the_table_has_a_cell_for_every_column_of_its_head():
    found = {"oracle": dict.fromkeys(goals.ORACLE_GOALS, 2.0)}
    rows = [goals.HEAD, *(line.cells for line in lines(found))]
    assert {row.count("|") for row in markdown(rows).splitlines()} == {len(goals.HEAD) + 1}


def test_rows_of_earlier_calls_are_kept(tmp_path, monkeypatch, capsys):
    kept, page = tmp_path / "kept.json", tmp_path / "page.md"
    kept.write_text(json.dumps({"oracle": dict.fromkeys(goals.ORACLE_GOALS, 2.0)}))
    row = goals.ROWS["verdict"]
    measured = {"ratio": 1.5, "stages_s": {"analysis": 9.0}}
    monkeypatch.setattr(
        goals, "ROWS", {**goals.ROWS, "verdict": row._replace(measure=lambda *_: measured)}
    )
    arguments = ["--rows", "verdict", "--json", str(kept), "--page", str(page)]
    goals.main(arguments, standalone_mode=False)
    assert json.loads(kept.read_text()).keys() == {"oracle", "verdict"}
    assert "no, by 20%" in capsys.readouterr().out
    assert "| analysis 9.0 s | 1.5 x | ≤ 1.25 x | no, by 20% |" in page.read_text()
