"""Each fault has a section on the page of its family: the loader takes its example and its keys."""

import re
from pathlib import Path

from scenarios import load
from scenarios.faults import FAULTS

PAGES = Path(__file__).parents[2] / "docs" / "faults"
AROUND = """
name: example
workload:
  topics: [{name: orders, partitions: 4, replication_factor: 3}]
  groups:
    - name: payments
      topics: [orders]
      members:
        - {kind: static, count: 3, instance_id: "teller-{n}", client: librdkafka-process}
      session_timeout: 10s
      heartbeat_interval: 1s
      max_poll_interval: 30s
    - name: audit
      topics: [orders]
      members: [{kind: dynamic, count: 2}]
      session_timeout: 10s
      heartbeat_interval: 1s
      max_poll_interval: 30s
phases: {impact: 30s, recovery: 0s}
"""


def family(name: str) -> str:
    """Return the page of a fault: that of the module which has it."""
    return FAULTS[name].__module__.rpartition(".")[2].replace("_", "-")


def keys_of(name: str) -> set[str]:
    return {field.alias or key for key, field in FAULTS[name].model_fields.items()} - {"fault"}


def test_the_section_of_a_fault_opens_with_an_example_and_has_every_key(tmp_path: Path) -> None:
    file = tmp_path / "example.yaml"
    shared = (PAGES / "index.md").read_text("utf-8").partition("## Keys of all faults")[2]
    for name in FAULTS:
        page = (PAGES / f"{family(name)}.md").read_text("utf-8")
        found = re.search(
            rf"^## {re.escape(name)}\n\n```yaml\n(.*?)```\n\n(.*?)(?=^## |\Z)",
            page,
            re.MULTILINE | re.DOTALL,
        )
        assert found, f"{name}: its section begins with an example"
        example, text = found.groups()
        file.write_text(AROUND + example, "utf-8")
        [fault] = load(file).faults
        assert fault.fault == name
        documented = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
        assert documented <= keys_of(name), name
        missing = {key for key in keys_of(name) - documented if f"`{key}" not in shared}
        assert not missing, name
        for part in ("Witness", "What to expect"):
            assert re.search(rf"\*\*{part}|, {part.lower()}\.\*\*", text), f"{name}: {part}"


def test_every_fault_is_in_the_index_with_a_link_to_its_section_and_in_the_site() -> None:
    listed = re.findall(
        r"\| \[`(.+)`\]\((\S+)\.md#(\S+)\)", (PAGES / "index.md").read_text("utf-8")
    )
    assert {name: (page, anchor) for name, page, anchor in listed} == {
        name: (family(name), name.replace(".", "")) for name in FAULTS
    }
    site = re.findall(r": faults/(\S+)\.md", (PAGES.parents[1] / "mkdocs.yml").read_text("utf-8"))
    assert set(site) | {"index"} == {page.stem for page in PAGES.glob("*.md")}
