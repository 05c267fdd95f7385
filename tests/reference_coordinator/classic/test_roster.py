"""What a group's members keep of themselves is what counting them anew gives."""

from hypothesis import given
from hypothesis import strategies as st

from reference_coordinator.classic.members import Members
from reference_coordinator.classic.state import Member

MEMBERS = st.builds(
    Member,
    member_id=st.sampled_from("abcd"),
    group_instance_id=st.none(),
    session_timeout_ms=st.just(1),
    rebalance_timeout_ms=st.integers(1, 3),
    protocol_type=st.just("consumer"),
    protocols=st.sampled_from([(("x", ""),), (("x", ""), ("y", "")), (("y", ""), ("x", ""))]),
    join=st.none() | st.just("waits"),
)
CHANGES = st.lists(MEMBERS | st.sampled_from("abcd"))


@given(CHANGES)
def test_kept_counts_are_those_of_all_members(changes: list[Member | str]) -> None:
    members, states = Members(), list[tuple[Members, dict[str, Member]]]()
    for change in changes:
        members = members.put(change) if isinstance(change, Member) else members.without(change)
        states.append((members, dict(members)))
    for kept, as_it_was in states:  # older ones, too, are what they were
        assert dict(kept) == as_it_was
        everyone = list(kept.values())
        names = [[name for name, _ in member.protocols] for member in everyone]
        assert kept.awaiting == sum(member.join is not None for member in everyone)
        assert kept.rebalance_timeout_ms == max(
            (m.rebalance_timeout_ms for m in everyone), default=0
        )
        assert kept.all_support("y") == all("y" in each for each in names)
        votes = [next(n for n in each if n in kept.common_protocols) for each in names]
        assert kept.votes == {vote: votes.count(vote) for vote in votes}
