"""The times of a `server.log` as Kafka's own logging files make them: `[%d] %p %m (%c)%n`.

    [2026-11-21 09:15:05,123] INFO [GroupCoordinator 1]: Startup complete. (kafka.coordinator…)

The time is the broker's local time, without an offset.
"""

from datetime import UTC, datetime, timedelta, tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def epoch_ms(date: str, zone: tzinfo) -> int | None:
    """Return a record's time in UTC epoch ms; None where there is no such date.

    Where the clock was turned back, local time names two instants: the first is taken.
    """
    try:
        at = datetime.fromisoformat(date.replace(",", ".")).replace(tzinfo=zone)
        return (at - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None
