"""Steps refer to values in responses; played again, they use the new responses."""

from groupquake.fuzz.script import GROUP, Assignments, Ref, Step, resolve

ANSWERS = {
    0: {"groupId": "g"},
    3: {
        "memberId": "m-1",
        "generationId": 7,
        "protocolName": "range",
        "members": [{"memberId": "m-1"}, {"memberId": "m-2"}, {"memberId": "m-3"}],
    },
}


def test_ids_and_generations_are_those_of_the_answer() -> None:
    template = {"memberId": Ref(3, "memberId"), "generationId": Ref(3, "generationId", -1), "x": 5}
    assert resolve(template, ANSWERS) == {"memberId": "m-1", "generationId": 6, "x": 5}


def test_the_group_is_the_one_that_is_played_in() -> None:
    assert resolve({"groups": [GROUP]}, ANSWERS) == {"groups": ["g"]}


def test_a_leader_assigns_to_the_members_of_its_response() -> None:
    shares = resolve(Assignments(3, spare=1, size=4), ANSWERS)
    assert shares == [
        {"memberId": "m-1", "assignment": "0001"},
        {"memberId": "m-2", "assignment": "0002"},
    ]


def test_a_missing_response_leaves_unknown_ids() -> None:
    resolved = resolve([Ref(9, "memberId"), Ref(9, "generationId", 1), Assignments(9)], ANSWERS)
    assert resolved == ["nobody", 0, []]


def test_a_step_knows_whose_answers_it_speaks_of() -> None:
    body = {"groups": [GROUP], "memberId": Ref(3, "memberId"), "a": [{"b": Assignments(4)}]}
    assert Step(5, 0.0, "c", "c.1", "SYNC_GROUP", 5, body).needs() == {3, 4}
