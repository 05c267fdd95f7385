"""The page on costs: static beside dynamic, members, rebalances, owners, evictions, fences."""

import pytest

from reports.page.costs import Costs, natural
from tests.reports.page_run import IMPACT_MS, ZERO_MS, expulsion, handover, holding, join, stop
from tests.reports.reading import read

OF_A_PASS = (
    # static beside dynamic
    "static static 8 8 restarts 0 0.0 0.00 s 0.00 / 0.00 / 0.00 s 0 20.6 s 0 0 400 dynamic",
    "dynamic dynamic 8 8 restarts 16 2.0 89.60 s 0.80 / 0.80 / 0.80 s 16 103.2 s 0 0 500",
    "In a group of both kinds, a rebalance is counted with the kind",
    # stops of each member
    "dynamic: 8 members stopped",
    "dynamic-dynamic-3 dynamic 14 0.800 0.800 0.800 11.200",
    # each rebalance with its cost
    "what each of the 18 rebalances cost",
    "dynamic +13.300 impact leave dynamic-dynamic-0 2 7 0.800 5.600 1 dynamic +15.800",
    "dynamic +15.800 impact new_member dynamic-dynamic-0 3 7 0.800 5.600 1",
    "static +3.000 formation new_member static-0 1 0 0.000 0.000 0",
    # causes by phase
    "cause formation impact recovery teardown static new_member 1 dynamic leave 8 new_member 1 8",
    # how costs are counted
    "A cooperative one revokes only what moves",
    "No member was evicted. No client was fenced.",
    "No partition had two owners at the same time, as clients saw it.",
)


def test_what_a_pass_says_of_costs(passed):
    assert [words for words in OF_A_PASS if words not in passed.text] == []
    assert "No member was stopped" not in passed.text


def test_what_happened_beside_the_rebalances_is_listed(made):
    made.stops.append(stop("static", "static-0", "static", IMPACT_MS + 2000, 1250.0))
    made.expulsions = [
        expulsion("static", IMPACT_MS + 500, "static-3-id0"),
        expulsion("static", IMPACT_MS + 600, "static-3", "HEARTBEAT"),
        expulsion("static", IMPACT_MS + 700, "static-3", "HEARTBEAT"),
        expulsion("static", IMPACT_MS + 800, "static-4", "JOIN_GROUP"),
    ]
    begun_ms, ended_ms = IMPACT_MS + 900, made.recovery_ms
    for number, overlap_ms in ((10, 1250.0), (9, 900.0)):
        both = ("open", overlap_ms, "static-3")
        made.holdings.append(
            holding("static", f"orders-{number}", "static-4", begun_ms, ended_ms, *both)
        )
    shown = read(made)
    for words in (
        "✓ PASS",
        "what each of the 18 rebalances cost",
        "outside of any rebalance - 1 1.250 1.250",
        "static static-3 impact +10.500",
        "static static-3 HEARTBEAT 2 +10.600 static static-4 JOIN_GROUP 1 +10.800",
        "static +10.900 1.250 static-3 static-4 2: orders-9, orders-10",
        "Two owners that no such member explains are a finding",
    ):
        assert words in shown.text
    rows = shown.figures["owners-1"]["blocks"][0]["rows"]
    shared = [bar for row in rows for bar in row["bars"] if bar["kind"] == "shared"]
    assert sorted(round(bar["to"] - bar["from"], 3) for bar in shared) == [0.9, 1.25]


def test_the_page_counts_omitted_evictions_and_fences(made):
    made.expulsions = [
        *(expulsion("static", IMPACT_MS + at, f"static-{at}-id0") for at in range(202)),
        *(expulsion("static", IMPACT_MS + at, f"static-{at}", "HEARTBEAT") for at in range(201)),
    ]
    shown = read(made).text
    assert "2 more evictions." in shown
    assert "1 more row." in shown


def test_a_run_without_client_history_says_so(made):
    made.stops, made.handovers, made.holdings = [], [], []
    shown = read(made)
    assert set(shown.figures) == {"timeline"}
    assert shown.text.count("Unknown: this run has no client history of its groups.") == 2
    row = "dynamic dynamic 8 8 restarts 16 2.0 unknown unknown unknown unknown 0 0 500"
    assert row in shown.text


def test_faults_of_a_broker_lie_over_every_group_and_one_request_has_nothing_to_heal(made):
    second = IMPACT_MS + 1000
    made.add_fault("broker.kill", "broker-2", "static", second, IMPACT_MS + 4000, broker=2)
    made.add_fault(
        "group.remove-members", "static-0", "static", second, None, witness="one LeaveGroup"
    )
    shown = read(made)
    for words in (
        "8 restarts + 1 broker kill + 1 removal → 0 8 20.6 partition-s",
        "8 restarts 16 1.8",
        "static static 8 1 broker kill, 1 removal, 8 restarts 0 0.0",
        "fault of a broker: it may affect every group",
        "group.remove-members static-0 static +11.000 nothing to heal ✓ one LeaveGroup",
    ):
        assert words in shown.text
    for name in ("timeline", "owners-1", "owners-2"):
        bands = shown.figures[name]["bands"]
        assert bands == [{"from": 11.0, "to": 14.0, "kind": "broker"}]
    named = [[row["name"] for row in block["rows"]] for block in shown.figure["blocks"]]
    assert all("broker-2" in names for names in named)
    assert ["the group" in names for names in named] == [True, False]
    assert "Ends the brokers with SIGKILL, and starts them again." in str(shown.figures)
    assert "not healed" not in shown.text + str(shown.figures)


def test_rows_in_another_order_give_the_same_page(made):
    made.expulsions = [
        expulsion("static", IMPACT_MS + at, f"static-{at}", api)
        for at in (500, 600)
        for api in ("", "HEARTBEAT")
    ]
    first = read(made).source
    for rows in (made.joins, made.stops, made.expulsions, made.holdings, made.handovers):
        assert len(rows) > 1
        rows.reverse()
    assert read(made).source == first


@pytest.fixture
def mixed(made):
    """Return the costs of a group with one static and one dynamic member."""
    run, judged, *_ = made.finish()
    rows = [
        {"group": "mixed", "started_ms": IMPACT_MS + 1000 * at, "reason": "leave",
         "member_id": cause, "generation": at, "duration_ms": 500.0, "client_reason": None}
        for at, cause in ((1, "d-1"), (2, "s-1"), (3, "d-1, s-1"), (4, ", "))
    ]  # fmt: skip
    fault = {"name": "member.restart", "injected_at_ms": IMPACT_MS, "group": "mixed"}
    judged["faults"] = [{**fault, "target": target} for target in ("s", "d", "d")]
    members = {"members_static": 1, "members_dynamic": 1}
    about = {**members, "responses_checked": 9, "partitions_moved": {"impact": 3}}
    judged["groups"] = {"mixed": about}
    tables = {
        "joins": [
            join("mixed", "s", "s-1", 1, ZERO_MS, static=True),
            join("mixed", "s.duplicate", "s-2", 1, ZERO_MS, static=True),
            join("mixed", "d", "d-1", 1, ZERO_MS),
        ],
        "stops": [
            stop("mixed", "s", "static", IMPACT_MS + 1100, 1000.0),
            stop("mixed", "d", "dynamic", IMPACT_MS + 2100, 2000.0),
            stop("mixed", "d", "dynamic", IMPACT_MS + 3600, 1000.0),
        ],
        "handovers": [handover("mixed", IMPACT_MS + 2500, 3, 1500.0)],
        "expulsions": [
            expulsion("mixed", IMPACT_MS, "d-1"),
            expulsion("mixed", IMPACT_MS, "s", "HEARTBEAT"),
            expulsion("mixed", ZERO_MS, "s", "HEARTBEAT"),
        ],
    }
    return Costs(run, judged, rows, tables)


def test_costs_of_a_mixed_group_are_split_by_kind(mixed):
    names = ("kind", "members", "faults", "rebalances", "each", "evictions", "fences")
    rows = mixed.beside("mixed")
    assert [(*(row[name] for name in names), row["stops"]["total"]) for row in rows] == [
        ("static and dynamic", 2, "3 restarts", 4, "1.3", 1, 1, 4000.0),
        ("static", 1, "1 restart", 2, "2.0", 0, 1, 1000.0),
        ("dynamic", 1, "2 restarts", 2, "1.0", 1, 0, 3000.0),
    ]


def test_stops_belong_to_the_rebalance_they_began_in_and_moves_to_the_one_before(mixed):
    rows = mixed.rebalances(["mixed"])
    begun = [row["started_ms"] and row["started_ms"] - ZERO_MS for row in rows]
    stops = [(row["stops"]["stops"], row["stops"]["total"], row["moved"]) for row in rows]
    assert list(zip(begun, stops, strict=True)) == [
        (11_000, (1, 1000.0, 0)),
        (12_000, (1, 2000.0, 3)),
        (13_000, (0, 0.0, 0)),
        (14_000, (0, 0.0, 0)),
        (None, (1, 1000.0, "")),
    ]
    assert rows[-1]["reason"] == "outside of any rebalance"


def test_a_member_that_changed_its_kind_counts_as_its_kind_at_the_time(made):
    joins = [join("g", "a", "a-2", 2, 5.0, static=True), join("g", "a", "a-1", 1, 1.0)]
    run, judged, *_ = made.finish()
    costs = Costs(run, judged, [], {"joins": joins})
    assert [costs.kind_at("a", at_ms) for at_ms in (0.0, 4.0, 6.0)] == [None, "dynamic", "static"]
    assert costs.clients == {"a-1": "a", "a-2": "a"}


def test_numbers_in_names_are_sorted_as_numbers():
    names = ["orders-10", "orders-9", "a²-2", "orders-1x", "2"]
    assert sorted(names, key=natural) == ["2", "a²-2", "orders-1x", "orders-9", "orders-10"]
