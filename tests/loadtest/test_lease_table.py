import pytest

from loadtest.errors import LoadtestError
from loadtest.lease_table import LeaseTable
from loadtest.options import configs_of
from tests.loadtest.test_options import given


@pytest.fixture
def table():
    return LeaseTable(
        {"static-0": "static", "dynamic-0": "dynamic", "static-1": "static", "static-2": "static"}
    )


def test_everyone_gets_another_name_until_none_is_left(table):
    assert [table.lease("static", holder) for holder in "abcd"] == [
        "static-0",
        "static-1",
        "static-2",
        None,
    ]


def test_kinds_are_leased_apart(table):
    assert [table.lease("dynamic"), table.lease("dynamic"), table.lease("producer")] == [
        "dynamic-0",
        None,
        None,
    ]


def test_a_freed_name_is_leased_again_before_later_ones(table):
    table.lease("static", "a"), table.lease("static", "b")
    table.release("static-0", "a")
    assert [table.lease("static"), table.lease("static")] == ["static-0", "static-2"]


def test_the_table_tells_who_has_what(table):
    table.lease("static", "a"), table.lease("static", "b"), table.lease("dynamic", "a")
    assert table.held_by("a") == ("static-0", "dynamic-0")
    assert (table.holder("static-1"), table.holder("static-2")) == ("b", None)
    assert "static-2" in table
    assert "nobody" not in table


@pytest.mark.parametrize(("name", "holder"), [("static-0", "b"), ("static-1", "a"), ("nobody", "")])
def test_only_a_holder_can_release(table, name, holder):
    table.lease("static", "a")
    with pytest.raises(LoadtestError, match="is not leased to"):
        table.release(name, holder)


def test_a_load_has_every_client_once():
    configs = configs_of(given("--static-members", "2", "--produce-rate", "1"))
    table = LeaseTable.of(configs)
    kinds = ("static", "dynamic", "producer")
    leased = [name for kind in kinds for name in iter(lambda kind=kind: table.lease(kind), None)]
    assert sorted(leased) == sorted(configs.by_name())
