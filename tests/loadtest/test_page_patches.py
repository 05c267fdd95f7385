"""Patches of JSON: what is changed by one is what it was made for."""

import json

from hypothesis import given
from hypothesis import strategies as st

from loadtest.page.patches import apply, difference

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "0", "1", "length"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_a_patch_makes_one_value_of_the_other(old: object, new: object) -> None:
    patch = json.loads(json.dumps(difference(old, new)))
    assert json.dumps(apply(json.loads(json.dumps(old)), patch), sort_keys=True) == json.dumps(
        new, sort_keys=True
    )


def test_a_patch_holds_what_changed_alone() -> None:
    old = {"a": [{"b": 1, "c": 2}, 3, 4], "d": {"e": 1}, "f": 0}
    assert difference(old, old) == {}
    new = {"a": [{"b": 1, "c": 5}, 3], "d": {"e": 1}, "g": [0]}
    assert difference(old, new) == {
        "a": {"0": {"c": [5]}, "length": [2]}, "f": None, "g": [[0]]
    }  # fmt: skip
