"""What the page asks of Spark: which groups to draw, and what their members' requests tell."""

import json
from types import SimpleNamespace

import pytest

from reports import page
from reports.scenes import GROUPS_DRAWN, Join
from reports.spark import session

REQUEST = (
    "group STRING, api STRING, client_id STRING, answered_ms DOUBLE, error_code INT, "
    "readable BOOLEAN, request STRING, response STRING"
)

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with session("local[1]", 0, tmp_path_factory.mktemp("spark") / "spark.log") as running:
        yield running


def asked(api, at_ms, error, request, response=None, group="g", readable=True):
    texts = (json.dumps(request), json.dumps(response or {}))
    return (group, api, "client", at_ms, error, readable, *texts)


def tables(spark, requests, outcomes):
    return SimpleNamespace(
        requests=spark.createDataFrame(requests, REQUEST),
        comparison=spark.createDataFrame(outcomes, "group STRING, outcome STRING"),
    )


def test_members_are_known_by_their_own_requests(spark):
    a, b = {"memberId": "a"}, {"memberId": "b"}
    joined = {"memberId": "a", "generationId": 1}
    requests = [
        asked("JOIN_GROUP", 5.0, 79, {"memberId": ""}, {"memberId": "a", "generationId": -1}),
        asked("JOIN_GROUP", 10.0, 0, a, joined),
        asked("HEARTBEAT", 20.0, 27, a),
        asked("JOIN_GROUP", 30.0, 0, a, joined | {"generationId": 2}),
        asked("OFFSET_COMMIT", 40.0, None, a),
        asked("HEARTBEAT", 50.0, 25, a),
        asked("JOIN_GROUP", 60.0, 0, {"memberId": ""}, {"memberId": "b", "generationId": 2}),
        asked("HEARTBEAT", 70.0, 0, b),
        asked("LEAVE_GROUP", 80.0, 0, {"members": [b]}),
        asked("HEARTBEAT", 90.0, 0, b, readable=False),
        asked("OFFSET_FETCH", 95.0, 0, b),
        asked("JOIN_GROUP", 99.0, 0, a, joined, group="not in the comparison"),
    ]
    scenes = page.collect(tables(spark, requests, [("g", "match")]))
    assert scenes.groups == ("g",)
    assert scenes.joins == (
        Join("g", "client", "a", 1, 10.0),
        Join("g", "client", "a", 2, 30.0),
        Join("g", "client", "b", 2, 60.0),
    )
    assert scenes.last_ms == {("g", "a"): 40.0, ("g", "b"): 80.0}
    assert scenes.clients() == {"a": "client", "b": "client"}


def test_groups_with_differences_come_first_then_those_that_rebalanced_most(spark):
    calm = [(f"calm-{number:02}", "match") for number in range(GROUPS_DRAWN)]
    outcomes = [*calm, ("wrong", "late"), *[("busy", "match")] * 2]
    scenes = page.collect(tables(spark, [], outcomes))
    expected = ["wrong", "busy", *(name for name, _ in calm)]
    assert list(scenes.groups) == expected[:GROUPS_DRAWN]
