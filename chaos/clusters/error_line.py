"""Finds the line that says what went wrong, in the output of a broker or a Kafka tool."""

import re

_ERROR = re.compile(r"^\[[^\]]+\] (?:ERROR|FATAL) (?P<text>.*)", re.MULTILINE)
_EXCEPTION = re.compile(
    r'^(?:Exception in thread "[^"]*" )?(?:[\w$]+\.)+(?P<text>[\w$]+(?:Exception|Error)\b.*)',
    re.MULTILINE,
)


def error_line(text: str) -> str:
    """Return one line: the first exception after the first error, else the error, else the last.

    The first one, since most of those that follow come from the shutdown.
    """
    error = _ERROR.search(text)
    exception = _EXCEPTION.search(text, error.start() if error else 0)
    first = exception or error
    if first is not None:
        return first["text"].strip()
    return (text.strip().splitlines() or ["no output"])[-1].strip()
