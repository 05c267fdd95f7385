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
        ({}, "12,400 records processed, 0 lost, 31 twice (allowed), 0 out of order"),
        (
            {"lost": None, "twice_allowed": 1, "after_given_up": 2},
            (
                "12,400 records processed, lost: unknown, 31 twice (1 allowed), 0 out of order,"
                " 2 after the partition was given up"
            ),
        ),
    ],
)
def test_what_became_of_records(more, written):
    assert records(SEEN | more) == written


def test_nobody_knows_where_no_member_tells():
    assert records(None) == "unknown: no member says what it processed"
