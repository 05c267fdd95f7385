"""What a user reads who made a mistake: table by table, word by word."""

from pathlib import Path

import pytest
import yaml

from scenarios import ScenarioError, load, named
from scenarios.document import Document
from tests.scenarios.conftest import SMALL, Load, Problems

MISTAKES = yaml.safe_load((Path(__file__).parent / "mistakes.yaml").read_text("utf-8"))


def test_one_mistake(problems: Problems) -> None:
    assert len(MISTAKES) > 90
    for good, bad, message in MISTAKES:
        assert good in SMALL
        assert message in problems(SMALL.replace(good, bad, 1))


def test_names_are_unique_over_all_groups(problems: Problems) -> None:
    second = """\
    - name: audit
      topics: [orders]
      members:
        - {kind: dynamic, count: 1}
        - {kind: static, count: 2, instance_id: "teller-{n}"}
    - name: late
      topics: [orders]
      members: [{kind: static, count: 1, instance_id: audit-dynamic-0}]
    - name: audit
      topics: [orders]
      members: [{kind: static, count: 1, instance_id: x}]
"""
    clash = "is already the name of a member"
    away = SMALL.replace("down_for: 2s", "down_for: 6s")
    lines = problems(away.replace("steady_state:", f"{second}steady_state:"))
    assert [line.partition(" of group")[0] for line in lines] == [
        f"20: workload.groups.1.members.1.instance_id: 'teller-0' {clash}",
        f"23: workload.groups.2.members.0.instance_id: 'audit-dynamic-0' {clash}",
        "24: workload.groups.3.name: 'audit' is taken; choose another name",
    ]


def test_a_policy_has_its_own_configs_alone(problems: Problems) -> None:
    text = SMALL.replace("name: small", "name: small\njudge: kip-423")
    fault = "{fault: group.configure, group: payments, at: 1s, configs: {target.group.size: 2}}"
    good = "{fault: member.restart, target: {names: [teller-1]}, at: 1s, down_for: 2s}"
    (line,) = problems(text.replace(good, fault))
    at, _, what = line.partition(": no group has target.group.size under judge: kip-423; ")
    assert (at, what) == ("22: faults.1.configs", "write judge: hot-standby")


def test_all_problems_of_shape_are_reported_in_the_files_order(problems: Problems) -> None:
    text = SMALL.replace("name: small", "nam: small").replace("rate: 5", "rate: x")
    lines = problems(text.replace("20s", "20") + "name2: x\ncluster: {}\n")
    assert [line.partition(": ")[0] for line in lines] == ["1", "1", "7", "22", "25", "26"]


def test_all_problems_between_parts_are_reported_at_once(problems: Problems) -> None:
    text = SMALL.replace("brokers: 3", "brokers: 1").replace("rebalances: 0", "rebalances: {}")
    assert len(problems(text.replace("[teller-1]", "[x, y]"))) == 4


def test_broken_items_do_not_make_their_list_empty(problems: Problems) -> None:
    assert len(problems(SMALL.replace("count: 2", "count: 0"))) == 1


def test_a_long_value_is_cut_and_a_key_stays_on_one_line(problems: Problems) -> None:
    [line] = problems(SMALL.replace("name: small", f"name: {'x' * 300}"))
    assert len(line) < 150
    assert len(problems(f'{SMALL}"a\\nb": 1\n')) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: empty; start from one in the library: absent-member, batch-removal, "),
        ("# nothing yet\n", "1: empty; start from one in the library: "),
        ("- a\n", "1: a list is not a mapping; write keys with values"),
        ("\njust text", "1: 'just text' is not a mapping; write keys with values"),
        ("name: x\nworkload: [", "2: not valid YAML (while parsing a flow node, expected the node"),
        ("name: x\n\tb: 1", "2: not valid YAML (while scanning for the next token, found char"),
        ("name: a: b", "1: not valid YAML (mapping values are not allowed here); correct"),
        ("name: x\n---\nname: y", "2: not valid YAML (expected a single document in the stream"),
        ("name: x\ny: a\0b", "2: not valid YAML (a character YAML forbids (code 0))"),
        ("name: x\ny: *z", "2: not valid YAML (found undefined alias 'z')"),
        ("name: x\ny: !z 1", "2: not valid YAML (could not determine a constructor for the tag"),
        ("a: 1\nb: 2026-13-01", "2: not valid YAML ('2026-13-01' is not the date or number it"),
        ("a: 1\nb: !!bool x", "2: not valid YAML ('x' is not the date or number it looks like)"),
        ("a: 1\n[b]: 2", "2: not valid YAML (while constructing a mapping, found unhashable key)"),
        ("[" * 5000, "1: not valid YAML (nested too deeply); correct the syntax"),
    ],
)
def test_not_an_experiment_at_all(problems: Problems, text: str, message: str) -> None:
    [line] = problems(text)
    assert line.startswith(message)


def test_a_structure_that_contains_itself_is_refused(problems: Problems) -> None:
    assert problems("name: &a [*a]")[0].startswith("1: name: a list is not text")
    assert problems("&a [*a]")[0].startswith("1: a list is not a mapping")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    for name, message in {
        "none.yaml": "no such file; check the path",
        ".": "cannot be read (not a regular file); check the path",
        "latin.yaml": "not UTF-8 text; save it as UTF-8",
        "latin.yaml/x": "cannot be read (Not a directory); check the path",
    }.items():
        with pytest.raises(ScenarioError) as caught:
            load(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: {message}"


def test_an_unknown_name_of_the_library() -> None:
    with pytest.raises(ScenarioError) as caught:
        named("roling-bounce")
    assert str(caught.value) == (
        "the library has no experiment 'roling-bounce'; did you mean 'rolling-bounce'?"
    )


def test_anchors_and_merges_are_fine_and_found_again(load_text: Load, problems: Problems) -> None:
    text = SMALL.replace("- {fault: group", "- &first {fault: group")
    again = "  - {<<: *first, at: 30s}\nphases:"
    experiment = load_text(text.replace("phases:", again))
    assert [fault.at_ms for fault in experiment.faults] == [1_000, 1_000, 30_000]
    assert problems(text.replace("phases:", again.replace("30s", "30"))) == [
        "22: faults.2.at: 30 has no unit; write 30s for seconds or 30ms"
    ]


def test_evidence_and_settings_that_a_release_lacks(problems: Problems) -> None:
    old = SMALL.replace("cluster: {", "cluster: {version: 2.4.1, ")
    [line] = problems(old.replace("{kind: static", "{client: java, kind: static"))
    assert "members.0.client: java needs Kafka 2.5.0 or later" in line
    [line] = problems(old.replace("expect:\n", "expect:\n  - {group: payments, unowned: 0}\n"))
    assert "expect.0.unowned: brokers log assignments from Kafka 2.8.0 on" in line


def test_java_members_read_one_topic(problems: Problems) -> None:
    text = SMALL.replace("{kind: static", "{client: java, kind: static")
    more = text.replace("  producers:", "    - {name: more}\n  producers:")
    (line,) = problems(more.replace("topics: [orders]", "topics: [orders, more]"))
    assert line == (
        "16: workload.groups.0.members.0.client: java reads one topic, and group 'payments' has 2; "
        "give it one, or leave out client"
    )


def test_a_key_is_a_word_even_where_yaml_takes_it_for_a_truth_value() -> None:
    document = Document("on: [1]\nno: {off: yes}\ntrue: 2\n")
    assert document.data == {"on": [1], "no": {"off": True}, "true": 2}
    assert document.line_of(("no", "off")) == 2
