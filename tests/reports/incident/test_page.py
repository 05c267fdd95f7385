"""The page of an incident, from the lines of a log."""

from typing import Any

from reports.incident import page
from tests.reports.incident.incident_here import with_rows
from tests.reports.reading import Page

MEMBER = "app-f16351f5-996e-42c3-a846-07c023f0f2b1"
SEVEN_WEEKS_LATER = "2026-02-23 10:00:00,000"
TEN_OCLOCK_MS = 1_767_607_200_000.0  # 2026-01-05, UTC


def log(*lines: str, broker: int = 1) -> str:
    """Return lines of a coordinator, given as "time message"."""
    return "".join(
        f"[2026-01-05 {line[:12]}] INFO [GroupCoordinator {broker}]: {line[13:]}"
        " (kafka.coordinator.group.GroupCoordinator)\n"
        for line in lines
    )


def preparing(at: str, generation: int, reason: str = f"Adding new member {MEMBER}") -> str:
    return (
        f"{at} Preparing to rebalance group g in state PreparingRebalance with old generation"
        f" {generation} (__consumer_offsets-7) (reason: {reason} with group instance id None;"
        " client reason: not provided)"
    )


def assigned(at: str, generation: int) -> list[str]:
    about = f"for generation {generation}. The group has 1 members, 0 of which are static."
    return [
        f"{at} Stabilized group g generation {generation} (__consumer_offsets-7) with 1 members",
        f"{at} Assignment received from leader {MEMBER} for group g {about}",
    ]


def read(text: str, **instead: Any) -> Page:
    """Return the page of one log, with other values in its content."""
    incident, rows = with_rows({"server.log": text.encode()})
    return Page(page.render(incident | instead, rows))


def rows(figure: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the bars of each row of the one group."""
    (block,) = figure["blocks"]
    return {row["name"]: row["bars"] for row in block["rows"]}


WHOLE = log(preparing("10:00:00,000", 4), *assigned("10:00:03,010", 5))
BROKEN = (
    WHOLE
    + log(preparing("10:01:00,000", 9))
    + log(preparing("10:02:00,000", 10), *assigned("10:02:01,000", 11), broker=2)
)


def test_seven_weeks_are_dates() -> None:
    late = log(preparing("10:00:00,000", 5)).replace("2026-01-05 10:00:00,000", SEVEN_WEEKS_LATER)
    figure = read(WHOLE + late).figure
    assert (figure["axis"]["shows"], figure["axis"]["zero_ms"]) == ("date", TEN_OCLOCK_MS)
    assert [bar["from"] for bar in rows(figure)["rebalances"]] == [0.0, 49 * 86_400.0]


def test_a_bar_is_as_long_as_its_rebalance() -> None:
    (begun,), (strip,) = rows(read(WHOLE).figure).values()
    assert (begun["kind"], begun["from"], begun["to"]) == ("cause hue-0", 0.0, None)
    assert (strip["text"], strip["from"], strip["to"]) == ("1", 0.0, None)


def test_every_rebalance_has_a_row_also_without_its_end() -> None:
    found = read(BROKEN)
    assert [f"<tr><td>2026-01-05 10:0{at}:00.000<td>" in found.source for at in range(4)] == [
        True, True, True, False,
    ]  # fmt: skip
    assert "no end in the logs" in found.text
    assert "generations 6 to 9 are not in the logs" in found.text


def test_who_coordinated_and_what_is_missing_is_drawn() -> None:
    drawn = rows(read(BROKEN).figure)
    assert [bar["text"] for bar in drawn["coordinator"]] == ["1", "2"]
    [gap] = [bar for bar in drawn["rebalances"] if bar["kind"] == "missing"]
    assert (gap["from"], gap["to"]) == (3.01, 60.0)
    assert "generations 6 to 9 are not in the logs" in gap["hover"][0]


def test_a_rebalance_without_its_beginning_is_none_of_the_join_phases() -> None:
    text = read(log(*assigned("10:00:03,010", 5))).text
    assert "before 2026-01-05 10:00:03.010 4 1 began before the logs 1 - - assigned" in text


def test_reasons_in_words_of_their_own_share_a_colour() -> None:
    unlike = {f"reason {number}": 1 for number in range(9)}
    assert page.causes({"leave": 2, **unlike})[1:] == [("cause", "another cause", 9)]


def test_a_release_without_reasons_has_a_cause_in_words() -> None:
    old = log("10:00:00,000 Preparing to restabilize group g with old generation 4")
    text = read(old).text
    assert "the broker wrote no reason" in text
    assert "another cause" not in text


def test_a_member_that_never_came_back_is_not_denied() -> None:
    gone = preparing("10:00:00,000", 4, f"removing member {MEMBER} on heartbeat expiration")
    text = read(log(gone.replace(" with group instance id None; client reason: not provided", "")))
    assert "no dynamic member came back within its session" in text.text


def test_a_line_of_another_protocol_asks_for_no_pattern() -> None:
    share = "[GroupId s] Member m new assignment state: epoch=7, previousEpoch=6, state=STABLE."
    text = read(
        WHOLE
        + WHOLE[: len("[2026-01-05 10:00:00,000] INFO ")]
        + f"[GroupCoordinator id=1 topic=__consumer_offsets partition=3] {share}"
        " (org.apache.kafka.coordinator.group.GroupMetadataManager)\n"
    ).text
    assert "group s is no classic group: this line is of another protocol" in text
    assert "--pattern" not in text


def test_a_file_with_the_newest_line_first_tells_the_same() -> None:
    """As consoles and collectors export them; lines of one time are in the order of the file."""
    begins, again = preparing("10:00:00,000", 4), preparing("10:00:03,000", 5)
    text = log(begins, *assigned("10:00:03,000", 5), again)
    newest_first = "".join(reversed(text.splitlines(keepends=True)))
    rows, reversed_rows = (with_rows({"app.log": of.encode()})[1] for of in (text, newest_first))
    assert [row["took_ms"] for row in rows] == [3_000.0, None]
    assert reversed_rows == rows


def test_what_is_too_much_to_draw_is_counted() -> None:
    found = read(WHOLE, rebalances=20_001)
    assert "1 rebalance, the first in time; 20,000 later ones" in found.text


def test_logs_without_a_rebalance_say_what_was_read() -> None:
    found = read(log("10:00:00,000 Starting up.") + "[2026-01-05 10:00:00,000] INFO x (y)\n")
    assert "of 2 lines in 1 file, 1 are a group coordinator's" in found.text
    assert found.figures == {}


def test_what_sessions_spare_and_cost_is_summed() -> None:
    def of(session_ms: float, spared: int, members: int, idle_ms: float) -> dict[str, Any]:
        cost = {"idle_members": members, "idle_ms": idle_ms}
        return {"session_ms": session_ms, "spared": spared, **cost}

    one = {"would_be_static": {"by_session": [of(6_000.0, 1, 1, 100.0), of(10_000.0, 2, 1, 500.0)]}}
    other = {"would_be_static": {"by_session": [of(6_000.0, 0, 0, 0.0), of(10_000.0, 3, 2, 4e3)]}}
    expected = [of(6_000.0, 1, 1, 100.0), of(10_000.0, 5, 3, 4_500.0)]
    assert page.trade_offs([one, other]) == expected
    assert page.trade_offs([]) == []


def test_20_000_rebalances_by_changing_coordinators_fit_into_10_mb() -> None:
    incident, (row,) = with_rows({"server.log": WHOLE.encode()})
    group = incident["groups"]["g"]
    group["coordinators"] = [
        {"broker": str(at % 3), "from_ms": row["at_ms"] + at, "until_ms": row["at_ms"] + at + 0.5}
        for at in range(5_000)
    ]
    reason = "rebalance failed due to MemberIdRequiredException"
    rows = 2_000 * [row | {"client_reason": reason, "clients": "orders-client-of-the-shop-17"}]
    empty, full = (page.render(incident, shown) for shown in ([], rows))
    assert len(empty) + 10 * (len(full) - len(empty)) < 10_000_000
