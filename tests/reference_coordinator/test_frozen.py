"""`frozen_dataclass`, `replace_fields`, and the fields that `step` may change together."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from reference_coordinator.classic import events, records, state
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import DeleteResponse, HeartbeatResponse
from reference_coordinator.classic.releases import NEWEST
from reference_coordinator.classic.state import Group, GroupFields, Member, MemberFields
from reference_coordinator.frozen import replace_fields

GROUP = Group("g")


def test_a_copy_differs_in_the_given_fields_alone() -> None:
    copy = replace_fields(GROUP, generation=3)
    assert (copy.generation, GROUP.generation) == (3, 0)
    assert replace_fields(copy, generation=0) == GROUP


def test_an_unknown_field_is_an_error_for_mypy_and_at_run_time() -> None:
    """mypy fails for a `type: ignore` that it does not need (`warn_unused_ignores`)."""
    with pytest.raises(TypeError, match="Group has no field generaton"):
        replace_fields(GROUP, generaton=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Group has no field generaton"):
        Context(GROUP, NEWEST, 0.0).change(generaton=3)  # type: ignore[call-arg]


def test_a_field_of_another_type_is_an_error_for_mypy() -> None:
    replace_fields(GROUP, generation="3")  # type: ignore[arg-type]
    Context(GROUP, NEWEST, 0.0).change(generation="3")  # type: ignore[arg-type]


def test_an_assignment_is_an_error_for_mypy() -> None:
    """At run time it is not refused; see the module."""
    mutable = Group("g")
    mutable.generation = 1  # type: ignore[misc]
    assert mutable != GROUP


def test_equal_values_have_equal_hashes() -> None:
    assert hash(HeartbeatResponse(25)) == hash(HeartbeatResponse(25))
    assert HeartbeatResponse(25) != DeleteResponse(25)


@pytest.mark.parametrize(("of", "typed"), [(Group, GroupFields), (Member, MemberFields)])
def test_typed_fields_are_those_of_the_dataclass(of: type, typed: type) -> None:
    known = {"GroupRecord": records.GroupRecord, "JoinReceived": events.JoinReceived}
    hints = get_type_hints(of, localns=known)
    assert {field.name for field in fields(of)} == hints.keys()
    assert get_type_hints(typed, vars(state), known).items() <= hints.items()
