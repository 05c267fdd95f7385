import pytest

from chaos.errors import TargetError
from chaos.targets import brokers, resolve
from scenarios.targets import (
    Brokers,
    CoordinatorOf,
    LeaderMemberOf,
    Names,
    PartitionLeader,
)

LEADERS = {"mixed": "lone"}


def test_every_form_selects_members(experiment):
    leader = LeaderMemberOf.model_validate({"leader-member-of": "mixed"})
    for target, group, names in (
        ("all", "mixed", ["mixed-dynamic-0", "mixed-dynamic-1", "lone"]),
        ("static", "mixed", ["lone"]),
        ("dynamic", "mixed", ["mixed-dynamic-0", "mixed-dynamic-1"]),
        (Names(names=("static-3", "static-0")), None, ["static-0", "static-3"]),
        (leader, None, ["lone"]),
    ):
        found = resolve(target, group, experiment(), LEADERS.get, allow_empty=False)
        assert [member.name for member in found] == names
    duplicate = {"mixed": "lone.duplicate"}  # which leads, and stands for its member
    [found] = resolve(leader, None, experiment(), duplicate.get, allow_empty=False)
    assert found.name == "lone"


NOBODY_LEADS = "target leader-member-of: static matches no member (the brokers' logs show no leader"
NONE_IS_DYNAMIC = (
    "target dynamic of static matches no member; group static has static-0, static-1, static-2,"
    " static-3: choose from these, or set allow_empty: true"
)


def test_a_target_without_a_match_is_an_error_that_lists_the_members(experiment):
    leader = LeaderMemberOf.model_validate({"leader-member-of": "static"})
    for target, group, said in (
        ("dynamic", "static", NONE_IS_DYNAMIC),
        (leader, None, NOBODY_LEADS),
    ):
        with pytest.raises(TargetError) as error:
            resolve(target, group, experiment(), LEADERS.get, allow_empty=False)
        assert str(error.value).startswith(said)
        assert "static-3: choose from these" in str(error.value)
        assert resolve(target, group, experiment(), LEADERS.get, allow_empty=True) == ()
    unknown = Names(names=("static-0", "statik-1"))
    with pytest.raises(TargetError, match="no member is called statik-1; there are static-0, "):
        resolve(unknown, None, experiment(), LEADERS.get, allow_empty=True)


def test_every_form_selects_brokers(fake_cluster):
    fake_cluster.controls = 2
    fake_cluster.coordinates["mixed"] = 3
    fake_cluster.leads["orders", 7] = 2
    for target, ids in (
        ("controller", (2,)),
        (CoordinatorOf.model_validate({"coordinator-of": "mixed"}), (3,)),
        (PartitionLeader.model_validate({"partition-leader": "orders/7"}), (2,)),
        (Brokers(brokers=(3, 1, 3)), (3, 1)),
    ):
        assert brokers(target, fake_cluster) == ids
