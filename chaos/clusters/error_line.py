"""Finds, in what a broker or a Kafka tool printed, the line that says what went wrong."""

import re

_ERROR = re.compile(r"^\[[^\]]+\] (?:ERROR|FATAL) (?P<said>.*)", re.MULTILINE)
_EXCEPTION = re.compile(
    r'^(?:Exception in thread "[^"]*" )?(?:[\w$]+\.)+(?P<said>[\w$]+(?:Exception|Error)\b.*)',
    re.MULTILINE,
)


def error_line(text: str) -> str:
    """Return one line: the first exception from the first error on, else an error, else the end.

    The first, since what follows is mostly the shutdown stumbling over what is not there.
    """
    error = _ERROR.search(text)
    exception = _EXCEPTION.search(text, error.start() if error else 0)
    first = exception or error
    if first is not None:
        return first["said"].strip()
    return (text.strip().splitlines() or ["it said nothing"])[-1].strip()
