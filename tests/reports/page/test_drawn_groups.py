"""What the page asks of the tables: which groups to draw, and what their members' requests tell."""

import json
from collections import Counter

import pandas as pd

from reports.judgement.digest import Digest
from reports.judgement.logged import REQUEST, Requests
from reports.judgement.members import Members
from reports.page.costs import COLUMNS
from reports.page.drawn_groups import GROUPS_DRAWN, Membership, chosen, memberships


def logged(api, at_ms, error, request, response=None, client="client"):
    row = dict.fromkeys(REQUEST) | {
        "api": api, "client_id": client, "at_ms": at_ms, "answered_ms": at_ms,
        "arrived_ms": at_ms, "error_code": error, "request": json.dumps(request),
        "response": json.dumps(response or {}),
    }  # fmt: skip
    return tuple(row[column] for column in REQUEST)


def test_a_member_is_in_its_group_until_its_next_join_or_its_last_accepted_request():
    a, b = {"memberId": "a"}, {"memberId": "b"}
    joined = {"memberId": "a", "generationId": 1}
    requests = [
        logged("JOIN_GROUP", 5.0, 79, {"memberId": ""}, {"memberId": "a", "generationId": -1}),
        logged("JOIN_GROUP", 10.0, 0, a, joined),
        logged("JOIN_GROUP", 12.0, 0, {"memberId": "o"}, joined | {"memberId": "o"}, "other"),
        logged("HEARTBEAT", 20.0, 27, a),
        logged("JOIN_GROUP", 30.0, 0, a, joined | {"generationId": 2}),
        logged("OFFSET_COMMIT", 40.0, None, a),
        logged("HEARTBEAT", 50.0, 25, a),
        logged("JOIN_GROUP", 60.0, 0, {"memberId": ""}, {"memberId": "b", "generationId": 2}),
        logged("HEARTBEAT", 70.0, 0, b),
        logged("LEAVE_GROUP", 80.0, 0, {"members": [b]}),
    ]
    seen = Members()
    joins = [row | {"group": "g"} for row in seen.add(Requests.decoded(requests))]
    heard = [row | {"group": "g"} for row in seen.heard()]
    of_another_group = {"group": "h", "member_id": "a", "last_ms": 9.0}
    frame = pd.DataFrame(joins, columns=COLUMNS["joins"])
    assert memberships(frame, [*heard, of_another_group]) == [
        Membership("client", "a", 1, 10.0, 30.0),
        Membership("client", "a", 2, 30.0, 40.0),
        Membership("client", "b", 2, 60.0, 80.0),
        Membership("other", "o", 1, 12.0, 12.0),
    ]


def test_groups_with_differences_come_first_then_those_that_rebalanced_most():
    calm = {f"calm-{number:02}": Digest(rows=Counter(comparison=1)) for number in range(12)}
    digests = calm | {
        "busy": Digest(rows=Counter(comparison=2)),
        "without rebalances": Digest(rows=Counter(joins=5)),
        "wrong": Digest(rows=Counter(comparison=1), different=1),
    }
    assert list(chosen(digests)) == ["wrong", "busy", *calm][:GROUPS_DRAWN]
