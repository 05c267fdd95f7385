"""How members and producers count in Locust's statistics."""

from typing import Any, Protocol


class StatisticRecorder(Protocol):
    """Counts one event `name`.

    `took_ms` is None for events without a duration, `size` is in bytes, `error` marks a failure.
    """

    def __call__(
        self, name: str, took_ms: float | None, size: int = 0, error: str | None = None
    ) -> None:
        """Count it."""


class ReportedError(Exception):
    """The exception of a failed event; Locust groups failures by its text."""


def locust_recorder(events: Any, request_type: str) -> StatisticRecorder:
    """Return a recorder that fires Locust's request event with this `request_type`."""

    def report(name: str, took_ms: float | None, size: int = 0, error: str | None = None) -> None:
        events.request.fire(
            request_type=request_type,
            name=name,
            response_time=took_ms,
            response_length=size,
            exception=ReportedError(error) if error else None,
            context={},
        )

    return report


def no_statistics(
    name: str, took_ms: float | None, size: int = 0, error: str | None = None
) -> None:
    """The recorder of processes without Locust."""
