"""What the page asks of the tables: which groups to draw, and what their members' requests tell."""

import json
from collections import defaultdict

from reports.judgement import members
from reports.page.drawn_groups import GROUPS_DRAWN, Join, collect
from tests.reports.stored import stored


def logged(api, at_ms, error, request, response=None, group="g"):
    row = dict.fromkeys(members.OBSERVED_COLUMNS) | {
        "group": group, "api": api, "client_id": "client", "answered_ms": at_ms,
        "error_code": error,
        "request": json.dumps(request), "response": json.dumps(response or {}),
    }  # fmt: skip
    return members.Request(row)


def tables(folder, requests, outcomes):
    rows = defaultdict(list)
    for group in {one.row["group"] for one in requests}:
        mine = [one for one in requests if one.row["group"] == group]
        rows["joins"] += [row | {"group": group} for row in members.joins(mine)]
        rows["heard"] += [row | {"group": group} for row in members.heard(mine)]
    rows["comparison"] = [{"group": group, "outcome": outcome} for group, outcome in outcomes]
    return stored(folder, **rows)


def test_members_are_known_by_their_own_requests(tmp_path):
    a, b = {"memberId": "a"}, {"memberId": "b"}
    joined = {"memberId": "a", "generationId": 1}
    requests = [
        logged("JOIN_GROUP", 5.0, 79, {"memberId": ""}, {"memberId": "a", "generationId": -1}),
        logged("JOIN_GROUP", 10.0, 0, a, joined),
        logged("HEARTBEAT", 20.0, 27, a),
        logged("JOIN_GROUP", 30.0, 0, a, joined | {"generationId": 2}),
        logged("OFFSET_COMMIT", 40.0, None, a),
        logged("HEARTBEAT", 50.0, 25, a),
        logged("JOIN_GROUP", 60.0, 0, {"memberId": ""}, {"memberId": "b", "generationId": 2}),
        logged("HEARTBEAT", 70.0, 0, b),
        logged("LEAVE_GROUP", 80.0, 0, {"members": [b]}),
        logged("JOIN_GROUP", 99.0, 0, a, joined, group="not in the comparison"),
    ]
    written = tables(tmp_path, requests, [("g", "match")])
    drawn = collect(written.rows("comparison"), written.rows_of)
    assert drawn.groups == ("g",)
    assert drawn.joins == (
        Join("g", "client", "a", 1, 10.0),
        Join("g", "client", "a", 2, 30.0),
        Join("g", "client", "b", 2, 60.0),
    )
    assert drawn.last_ms == {("g", "a"): 40.0, ("g", "b"): 80.0}
    assert drawn.clients() == {"a": "client", "b": "client"}


def test_groups_with_differences_come_first_then_those_that_rebalanced_most(tmp_path):
    calm = [(f"calm-{number:02}", "match") for number in range(GROUPS_DRAWN)]
    outcomes = [*calm, ("wrong", "late"), *[("busy", "match")] * 2]
    written = tables(tmp_path, [], outcomes)
    drawn = collect(written.rows("comparison"), written.rows_of)
    expected = ["wrong", "busy", *(name for name, _ in calm)]
    assert list(drawn.groups) == expected[:GROUPS_DRAWN]
