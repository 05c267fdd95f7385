"""What the figures share."""

from hypothesis import given
from hypothesis import strategies as st

from reports.page.drawing import short_names

ALIKE = [
    f"payments-production-{region}-consumer-of-orders-{number}-of-the-shop-v2"
    for region in ("eu-west", "eu-east", "us-east")
    for number in (1, 2, 10)
]
NAMES = st.lists(st.text("ab…-", max_size=60) | st.sampled_from(ALIKE), max_size=12)


@given(names=NAMES)
def test_names_that_differ_have_labels_that_differ(names: list[str]) -> None:
    found = short_names(names)
    assert found.keys() == {*names}
    assert len({*found.values()}) == len(found)
    assert all(label == name for name, label in found.items() if len(name) <= 22)


def test_long_names_keep_what_sets_them_apart() -> None:
    found = short_names(ALIKE)
    assert max(map(len, found.values())) <= 22
    assert short_names(["x" * 60]) == {"x" * 60: f"{'x' * 10}…{'x' * 10}"}
