"""The page of each fault: the loader takes its example, and its keys are those of the file."""

import re
from pathlib import Path

import pytest
import yaml

from scenarios import load
from scenarios.faults import FAULTS

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "faults"
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


@pytest.mark.parametrize("name", FAULTS)
def test_a_page_opens_with_an_example_and_has_every_key(name: str, tmp_path: Path) -> None:
    text = (PAGES / f"{name}.md").read_text("utf-8")
    found = re.match(rf"# {re.escape(name)}\n\n```yaml\n(.*?)```\n\n", text, re.DOTALL)
    assert found, "a page begins with its name and an example"
    file = tmp_path / "example.yaml"
    file.write_text(AROUND + found[1], "utf-8")
    [fault] = load(file).faults
    assert fault.fault == name
    shared = (PAGES / "index.md").read_text("utf-8")
    shared = shared[shared.index("## Keys of all faults") :]
    keys = {field.alias or key for key, field in FAULTS[name].model_fields.items()} - {"fault"}
    assert [key for key in keys if f"`{key}`" not in text and f"`{key}" not in shared] == []
    documented = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert documented <= keys
    assert set(yaml.safe_load(found[1])["faults"][0]) <= keys | {"fault"}
    for part in ("Targets", "Witness", "What to expect", "Undo"):
        assert f"\n**{part}.** " in text


def test_every_fault_is_in_the_index_and_in_the_site() -> None:
    index = re.findall(
        r"^\| \[`(.+)`\]\((.+)\.md\)", (PAGES / "index.md").read_text(), re.MULTILINE
    )
    site = re.findall(r"- (\S+): faults/(\S+)\.md", (ROOT / "mkdocs.yml").read_text("utf-8"))
    for listed in (index, site):
        assert {name for name, _ in listed} == {page for _, page in listed} == set(FAULTS)
    assert {page.stem for page in PAGES.glob("*.md")} == {*FAULTS, "index"}
