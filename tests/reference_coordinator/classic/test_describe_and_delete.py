"""DescribeGroups and DeleteGroups, and what becomes of a group that nobody needs."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import DescribedMember, DescribeResponse
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from reference_coordinator.timing import COMMITTED_WITHIN_MS
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, SESSION_MS, Playbook
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, UNDER_ALL, by_rule

pytestmark = EVERY_RELEASE
DEAD = DescribeResponse(Error.NONE, "Dead")


def described(member_id: str, instance: str | None, **fields: str) -> DescribedMember:
    """Build the description of a member of these plays."""
    known = {"client_id": "client", "client_host": "/127.0.0.1", "metadata": "", "assignment": ""}
    return DescribedMember(member_id, instance, **{**known, **fields})


@case("testDescribeGroupStableForStaticMember")
def test_describe_a_stable_group(play):
    """Protocol, metadata and assignments of everyone."""
    play.statics("L", "F")
    members = frozenset(
        described(f"{name}-1", name, metadata="range:orders", assignment=f"work of {name}-1")
        for name in "LF"
    )
    assert play.describe() == DescribeResponse(Error.NONE, "Stable", "consumer", "range", members)


@by_rule("describes_assignments_in_every_state", "assignment", {True: "work of L-1", False: ""})
def test_describes_assignment_at_all_times(play, assignment):
    """A rebalancing group is described without protocol; in Scala without assignments, too."""
    play.statics("L")
    play.join(instance="N", client="c")
    members = frozenset(
        {described("L-1", "L", assignment=assignment), described("N-1", "N", client_id="c")}
    )
    for state in ("PreparingRebalance", "CompletingRebalance"):
        assert play.describe() == DescribeResponse(Error.NONE, state, "consumer", "", members)
        play.rejoin("L-1")


@UNDER_ALL
def test_describe_an_empty_group(play):
    """It keeps its type, but no protocol; before its first member it has no type either."""
    play.join(client="c")
    assert play.describe() == DescribeResponse(Error.NONE, "Empty")
    play.statics("I1")
    play.after(2 * SESSION_MS)
    assert "I1-1" not in play.member_ids
    assert play.describe() == DescribeResponse(Error.NONE, "Empty", "consumer")


@pytest.mark.parametrize(
    ("version", "error"), [(0, Error.NONE), (5, Error.NONE), (6, Error.GROUP_ID_NOT_FOUND)]
)
def test_describe_a_group_that_does_not_exist(play, version, error):
    """KIP-1043: v6 says so; before, it is a Dead group like any other."""
    assert play.describe(version=version) == DescribeResponse(error, "Dead")


@UNDER_ALL
def test_describe_elsewhere(play):
    """A broker that does not have the group, or not yet, has nothing to tell; no name is a name."""
    play.statics("I1")
    play.unload()
    for error in (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS):
        assert play.describe() == DescribeResponse(error)
        assert play.delete() is error
        play.start_loading()
    nameless = Playbook(group_id="")
    assert nameless.describe().error == Error.NONE
    assert nameless.delete() is Error.GROUP_ID_NOT_FOUND


@by_rule(
    "describes_static_to_old_clients", "error", {True: Error.NONE, False: Error.UNSUPPORTED_VERSION}
)
def test_describes_static_to_old_clients(play, error):
    """KAFKA-10239: in 2.5.0 versions below 4 failed with the first instance id in the group."""
    dynamic = play.join_dynamic("c")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.describe(version=3).error == Error.NONE
    play.join(instance="I1")
    play.join(dynamic.answer.member_id, client="c")
    assert play.describe(version=3) == (
        play.describe(version=4) if error is Error.NONE else DescribeResponse(error)
    )


@by_rule(
    "return_may_change_protocol",
    "error, state",
    {True: (Error.NONE, "PreparingRebalance"), False: (Error.UNKNOWN_SERVER_ERROR, "")},
)
def test_describe_after_a_return_without_the_protocol(play, error, state):
    """Until 2.6.0 the group stays Stable with a member that does not speak its protocol."""
    play.statics("L", "F")
    play.join(instance="F", protocols=("roundrobin",), version=6)
    response = play.describe()
    assert (response.error, response.state) == (error, state)


@by_rule(
    "describes_latest_client",
    "client, host",
    {True: ("second", "/10.0.0.2"), False: ("first", "/10.0.0.1")},
)
def test_describes_latest_client(play, client, host):
    """KAFKA-15704: a replaced static member keeps the old client id and host in descriptions."""
    play.join(instance="I1", client="first", host="/10.0.0.1")
    play.after(INITIAL_DELAY_MS)
    play.sync_everyone()
    play.join(instance="I1", client="second", host="/10.0.0.2")
    (member,) = play.describe().members
    assert (member.member_id, member.client_id, member.client_host) == ("I1-2", client, host)
    if play.profile.return_is_stored:
        play.crash()
        assert play.describe().members == {member}


@case("testValidateDeleteGroup")
def test_delete_a_group(play):
    """Only an Empty one goes, and then it never was; a Dead one is as good as gone."""
    assert play.delete() is Error.GROUP_ID_NOT_FOUND
    play.statics("I1")
    assert play.delete() is Error.NON_EMPTY_GROUP
    play.rejoin("I1-1")
    assert play.state is State.COMPLETING_REBALANCE
    assert play.delete() is Error.NON_EMPTY_GROUP
    play.join(instance="I2")
    assert play.state is State.PREPARING_REBALANCE
    assert play.delete() is Error.NON_EMPTY_GROUP
    play.leave(("", "I1"), ("", "I2"))
    assert play.state is State.EMPTY
    assert play.delete() is Error.NONE
    assert play.delete() is Error.GROUP_ID_NOT_FOUND
    assert play.describe() == DEAD
    play.crash()
    assert play.describe() == DEAD
    anew = play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    assert anew.answer.generation == 1
    play.force(State.DEAD)
    assert play.delete() is Error.GROUP_ID_NOT_FOUND


@by_rule("describes_committed_records", "state", {True: "Dead", False: "Empty"})
def test_describe_a_group_whose_first_record_is_on_its_way(play, state):
    """In Java it is not there yet, in Scala it is; after a second it is there anyway."""
    play.join(client="c")
    assert play.describe(confirmed=("Dead", "")) == DescribeResponse(Error.NONE, state)
    assert play.describe() == DescribeResponse(Error.NONE, "Empty")
    play.after(COMMITTED_WITHIN_MS + 1)
    assert play.describe(confirmed=("Dead", "")) == DescribeResponse(Error.NONE, "Empty")


@by_rule("describes_committed_records", "shown", {True: True, False: False})
def test_describe_a_group_whose_tombstone_is_on_its_way(play, shown):
    """In Java the group of before is still there, with its protocol type, and nothing of the new.

    Seen on 4.3.0: DeleteGroups, a JoinGroup that founds the group anew, DescribeGroups within 6 ms.
    """
    play.statics("I1")
    play.leave(("", "I1"))
    assert play.delete() is Error.NONE
    assert play.describe() == DEAD
    before = DescribeResponse(Error.NONE, "Empty", "consumer")
    for anew in ({}, {"client": "c"}, {"instance": "I1"}):
        if anew:
            play.join(**anew)
        assert (play.describe(confirmed=("Empty", "consumer")) == before) is shown
    play.after(COMMITTED_WITHIN_MS + 1)
    assert play.describe(confirmed=("Empty", "consumer")).state == "CompletingRebalance"


@by_rule(
    "deleted_group_is_dead_first",
    "meanwhile",
    {True: Error.COORDINATOR_NOT_AVAILABLE, False: Error.UNKNOWN_MEMBER_ID},
)
def test_requests_while_a_group_is_deleted(play, meanwhile):
    """In Scala it is Dead until its tombstone is written; in Java it is gone at once."""
    play.statics("I1")
    play.leave(("", "I1"))
    play.hold_writes = True
    deleted = play.ask_to_delete()
    assert deleted.pending is (meanwhile is Error.COORDINATOR_NOT_AVAILABLE)
    assert play.heartbeat("I1-1") is meanwhile
    assert play.sync("I1-1").error is meanwhile
    assert play.join("I1-1", instance="I1").error is meanwhile
    assert play.delete() is Error.GROUP_ID_NOT_FOUND
    if deleted.pending:
        play.written(deleted)
    assert deleted.error is Error.NONE
    assert play.heartbeat("I1-1") is Error.UNKNOWN_MEMBER_ID
    assert play.delete() is Error.GROUP_ID_NOT_FOUND


@UNDER_ALL
def test_ids_given_out_by_a_deleted_group(play):
    """They are unknown to the next, and no timer is left of them."""
    pending = play.join(client="c").answer.member_id
    assert play.delete() is Error.NONE
    assert play.armed(TimerKind.SESSION, pending) is None
    assert play.join(pending, client="c").error is Error.UNKNOWN_MEMBER_ID
    assert play.delete() is Error.GROUP_ID_NOT_FOUND


@UNDER_ALL
def test_a_group_that_expires(play):
    """Without members and offsets it is removed as if an operator had asked for it."""
    play.statics("I1")
    play.leave(("", "I1"))
    play.expire()
    assert play.records[-1] is None
    assert play.heartbeat("I1-1") is Error.UNKNOWN_MEMBER_ID
    assert play.describe() == DEAD
