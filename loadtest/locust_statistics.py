"""How members and producers tell Locust's statistics what they did."""

from typing import Any, Protocol


class StatisticRecorder(Protocol):
    """Counts one occurrence of `name`.

    `took_ms` is None for what has no duration, `size` counts bytes, `error` makes it a failure.
    """

    def __call__(
        self, name: str, took_ms: float | None, size: int = 0, error: str | None = None
    ) -> None:
        """Count it."""


class ReportedError(Exception):
    """What Locust shows for a failed entry; its text is what failures are grouped by."""


def locust_recorder(events: Any, request_type: str) -> StatisticRecorder:
    """Return a `StatisticRecorder` that fires Locust's request event under `request_type`."""

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
    """A `StatisticRecorder` for where no Locust runs."""
