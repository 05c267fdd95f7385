"""The size of a group's record; `test_big_groups` has it beside what real brokers wrote."""

import pytest

from kafka_protocol.group_record import StoredMember, batch_bytes, host_in

ONE = StoredMember("m", None, "c", "/h", "", "")


def more(member: StoredMember) -> int:
    """How much larger a record of a hundred gets by one; its lengths need no more bytes."""
    before, after = (
        batch_bytes("g", "consumer", "range", "m", [*[ONE] * 100, *last]) for last in ([], [member])
    )
    return after - before


def test_a_member_costs_its_texts_and_its_bytes() -> None:
    """Bytes as base64, or of which the length alone is known."""
    assert more(ONE) == 4 * 2 + len("mc/h") + 2 * 4 + 2 * 4
    assert more(ONE._replace(group_instance_id="i-1")) == more(ONE) + 3
    for assignment in ("AAAA", "(3 bytes)"):
        assert more(ONE._replace(assignment=assignment)) == more(ONE) + 3


@pytest.mark.parametrize(
    ("connection", "host"),
    [
        ("127.0.0.1:9092-127.0.0.2:51234-7", "/127.0.0.2"),
        ("[::1]:9092-10.0.0.7:51234-0-12", "/10.0.0.7"),
        ("tap 1, 7", ""),
        (None, ""),
    ],
)
def test_the_host_stands_in_the_name_of_the_connection(connection: str | None, host: str) -> None:
    assert host_in(connection) == host
