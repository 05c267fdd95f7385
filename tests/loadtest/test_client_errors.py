from confluent_kafka import KafkaError

from loadtest.client_errors import QUIET_MS, ClientErrors

LOST, DOWN = KafkaError(KafkaError._TRANSPORT), KafkaError(KafkaError._ALL_BROKERS_DOWN)


def written(*errors):
    """Return what is written of errors, which are pairs of an error and its time."""
    lines = []
    client_errors = ClientErrors(lambda event, **fields: lines.append((event, fields)))
    for error, at_ms in errors:
        client_errors.add(error, at_ms)
    assert {event for event, _ in lines} <= {"error"}
    return [fields for _, fields in lines]


def test_the_first_error_of_each_kind_is_written_at_once():
    assert written((LOST, 1_000.0), (DOWN, 1_000.1)) == [
        {"at_ms": 1_000.0, "error": LOST.str()},
        {"at_ms": 1_000.1, "error": DOWN.str()},
    ]


def test_repeated_errors_are_counted_for_a_second():
    flood = [(LOST, 1_000.0 + n) for n in range(100)]
    later = 1_000.0 + QUIET_MS
    assert written(*flood, (LOST, later), (LOST, later + QUIET_MS)) == [
        {"at_ms": 1_000.0, "error": LOST.str()},
        {"at_ms": later, "error": LOST.str(), "left_out": 99},
        {"at_ms": later + QUIET_MS, "error": LOST.str()},
    ]


def test_the_same_error_about_something_else_is_another_kind():
    lines = []
    client_errors = ClientErrors(lambda _, **fields: lines.append(fields["error"]))
    client_errors.add(LOST, 0.0)
    client_errors.add(LOST, 0.0, about="commit: ")
    assert lines == [LOST.str(), f"commit: {LOST.str()}"]
