"""The worked example of the replay's README: the requests of its table, replayed."""

import re
from pathlib import Path

import reference_coordinator.replay as replay_package
from kafka_protocol.errors import Error
from reference_coordinator.replay import Replay
from tests.reference_coordinator.replay.conftest import JOINS, Scenario

FOLDER = Path(replay_package.__file__).parent
README = (FOLDER / "README.md").read_text(encoding="utf-8")
HEADING = "| id | API |"
KINDS = ("leader", "member_id", "order", "protocol")
SHARE = "c2hhcmU="


def rows() -> list[list[str]]:
    lines = README[README.index(HEADING) :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def blocks() -> list[str]:
    return re.findall(r"```\n(.*?)\n```", README, re.DOTALL)


def scenario(heartbeat_answered: float | None = None) -> Scenario:
    """Write the table's requests down; bodies hold what the table leaves out."""
    made = Scenario()
    for id_, api, member_id, earliest, likely, latest, answered, error, given in rows():
        times = [float(ms) for ms in (earliest, latest, answered)]
        if api == "HEARTBEAT" and heartbeat_answered is not None:
            times[1:] = [heartbeat_answered, heartbeat_answered]
        members = [{"memberId": given, "groupInstanceId": "a", "metadata": "bQ=="}]
        joined = {"protocolName": "range", "leader": "a-1", "memberId": given, "generationId": 1}
        share = {"memberId": member_id, "assignment": SHARE}
        request, response = {
            "JOIN_GROUP": (JOINS, joined | {"members": members if id_ == "1" else []}),
            "SYNC_GROUP": ({"generationId": 1, "assignments": [share]}, {"assignment": SHARE}),
            "HEARTBEAT": ({"generationId": 1}, {}),
        }[api]
        made.ask(
            api, "a", float(likely), {**request, "memberId": member_id},
            response | {"errorCode": int(Error[error])}, before=float(likely) - times[0],
            latest=times[1], answered=times[2], connection=id_,
        )  # fmt: skip
        made.alter_last(id=id_)
    return made


def shown(outcome: Replay, *, all_of_it: bool = True) -> str:
    lines = [f"answered  {' '.join(checked.request for checked in outcome.checked)}"]
    if all_of_it:
        counts = (f"{kind}={outcome.bound.get(kind, 0)}" for kind in KINDS)
        lines.append(f"bound     {' '.join(counts)}")
        lines += [
            f"rows      {row.reason}: generation {row.old_generation} -> {row.generation}, "
            f"{row.ended_as}"
            for row in outcome.rows
        ]
    wrong = [
        f"{violation.request}: expected {violation.expected}, observed {violation.observed}"
        for violation in outcome.violations
    ]
    return "\n".join([*lines, f"violated  {'; '.join(wrong) or 'nothing'}"])


def test_the_other_order_explains_the_four_requests() -> None:
    assert shown(scenario().replay()) == blocks()[0]


def test_no_order_explains_a_heartbeat_that_is_fenced_too_early() -> None:
    outcome = scenario(heartbeat_answered=599).replay()
    assert shown(outcome, all_of_it=False) == blocks()[1]
    assert outcome.proven


def test_the_map_names_every_module() -> None:
    named = set(re.findall(r"`(\w+)`", README[README.index("## Modules") :]))
    modules = {file.stem for file in FOLDER.glob("*.py")} - {"__init__"}
    assert named == modules
