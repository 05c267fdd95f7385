"""What the page says about the records of a group."""

import pytest

from reports.page.wording import records

SEEN = {
    "processed": 12_400, "lost": 0, "twice": 31, "twice_allowed": 31, "out_of_order": 0,
    "after_given_up": 0, "misnumbered": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "written"),
    [
        ({}, "0 lost, 31 twice (as at-least-once allows), 0 out of order, 0 after"),
        ({"lost": None, "twice_allowed": 1, "after_given_up": 2},
         "lost: unknown, 31 twice (1 allowed), 0 out of order, 2 after"),
    ],
)  # fmt: skip
def test_what_became_of_records(more, written):
    rest = " the partition was given up, 0 with a wrong number"
    assert records(SEEN | more) == f"12,400 records processed, {written}{rest}"


def test_nobody_knows_where_no_member_tells():
    assert records(None) == "unknown: no member says what it processed"
