"""Faults by hand over the routes of the page, on a real cluster: refused, injected, healed."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from chaos.waiting import until
from tests.groupquake.test_ui_session import Session, port, session, start  # noqa: F401 (fixtures)

pytestmark = pytest.mark.cluster

KILL = {"fault": "member.kill", "target": {"names": ["clerk-0"]}, "down_for": "5m"}
DUPLICATE = {"fault": "member.duplicate-instance", "target": {"names": ["clerk-1"]}, "lasts": "5m"}
RESTART = {"fault": "broker.restart", "target": {"coordinator-of": "dynamic"}}


def test_what_was_broken_by_hand_is_foreseen_healed_and_judged(
    session: Session,  # noqa: F811
    small: Path,
    tmp_path: Path,
    port: int,  # noqa: F811
) -> None:
    text = small.read_text()
    begins, ends = text.index("faults:"), text.index("phases:")
    text = text[:begins] + text[ends:].replace("impact: 7s", "impact: 10m")
    small.write_text(text.replace("rebalances: {min: 3, max: 4}", "rebalances: 77"))
    session("--seed", 5)
    url = f"http://127.0.0.1:{port}/groupquake"

    def post(path: str, **content: Any) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}/{path}", json.dumps(content).encode(), headers)
        with urllib.request.urlopen(request) as reply:
            found: dict[str, Any] = json.load(reply)
        return found

    def events(fault_id: str) -> dict[str, dict[str, Any]]:
        journal = (tmp_path / "runs" / "latest" / "journal.jsonl").read_text().splitlines()
        entries = [json.loads(line) for line in journal]
        return {one["event"]: one for one in entries if one.get("fault_id") == fault_id}

    assert "no run is in progress" in post("faults", do="offer")["refused"]
    start(url.rpartition("/")[0])
    early = lambda: post("faults", do="inject", fault=KILL).get("refused", "")
    assert until(lambda: "not met" in early(), within_s=60)
    assert until(lambda: "ids" in post("faults", do="inject", fault=KILL), within_s=120)
    assert post("faults", do="inject", fault=KILL)["refused"] == "clerk-0 is not back from h1"
    assert {one["fault"] for one in post("faults", do="offer")["faults"]} >= {KILL["fault"]}
    foreseen = post("faults", do="foresee", fault=DUPLICATE)["forecast"]["groups"]
    assert foreseen["dynamic"]["rebalances"]["impact"]["total"] == [0, 0]
    assert post("faults", do="inject", fault=DUPLICATE)["ids"] == ["h2"]
    assert until(lambda: "injected" in events("h2"), within_s=60)
    assert post("faults/heal", fault_id="h1")["ids"] == ["h1"]
    assert post("faults/heal")["ids"] in (["h1", "h2"], ["h2"])
    assert until(lambda: {"verified"} <= {*events("h1")} & {*events("h2")}, within_s=120)
    assert post("faults", do="inject", fault=RESTART)["ids"] == ["h3"]
    assert until(lambda: "verified" in events("h3"), within_s=120)

    urllib.request.urlopen(f"{url.rpartition('/')[0]}/stop", b"").close()
    assert "refused" in post("faults", do="inject", fault=KILL)

    def latest() -> Any:
        with urllib.request.urlopen(f"{url}/state") as reply:
            return json.load(reply)["runs"][-1]

    assert until(lambda: latest()["result"], within_s=240)
    run = latest()
    assert (run["result"], run["why"]) == ("pass", [])
    folder = tmp_path / "runs" / "latest"
    verdict = json.loads((folder / "verdict.json").read_text())
    assert [(one["name"], one["by_hand"]) for one in verdict["faults"]] == [
        ("member.kill", True),
        ("member.duplicate-instance", True),
        ("broker.restart", True),
    ]
    assert all(one["verified"] for one in verdict["faults"])
    plan = json.loads((folder / "by-hand.json").read_text())
    assert [step["id"] for step in plan["steps"]] == ["h1", "h2", "h3"]
    assert (folder / "by-hand.json").name in verdict["repeat_command"]
