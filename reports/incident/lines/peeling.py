"""What wraps lines of logs: a text of a file in; the lines in it as their broker wrote them out.

Peeled are marks of encodings, colours, boxes of terminals and Markdown; then strings of JSON, of
logfmt and cells of CSV, one in the other: the string that has a coordinator's message is the line.
Whatever its object calls them, the time, the logger and the process are put around it where the
line itself would have them, so that what reads lines needs to know nothing of JSON.
"""

import re
from json import JSONDecodeError, loads

from reports.incident.lines.anchor import ANCHOR
from reports.incident.lines.dates import TIME

_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")  # all else may be a name: brokers print it as it is
_ESCAPED = re.compile(r"\\+u00((?!22|5[cC])[2-7][\da-fA-F])")
_EDGES = " \t\r\n\v\f\ufeff\ufffd│┃║|`"
_MARKDOWN = re.compile(r"\*\*|\\(?=[_\[\]*()#.|<>-])")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_CELL = re.compile(r'(?:^|[,;\t])\s*"((?:[^"]|"")*)"(?=\s*(?:[,;\t]|$))')
_WHEN = re.compile(
    r'"(?:@?timestamp|time|ts|@t|date|datetime|asctime|timeMillis|instant|'
    r'_*(?:SOURCE_)?REALTIME_TIMESTAMP)"\s*:\s*[\[{]?"?$'
)
_WHERE = re.compile(
    r'"((?:\w+\.)*(?:pod|pod_?name|container_?name|host|host_?name|_hostname|log_?stream(?:_?name)?'
    r'|instance))"\s*:\s*"([^"\\]+)"', re.IGNORECASE
)  # fmt: skip
_LOGGER = re.compile(
    r'"(?:\w+\.)*_?(?:logger|logger_?name|category)"\s*:\s*"([\w.$]+)"', re.IGNORECASE
)
_DEEPEST = 5
"""How many wrappings one line may have: a container's, a shipper's, an index's, an export's."""


def peeled(raw: str, wanted: re.Pattern[str] = ANCHOR, depth: int = 0) -> list[str]:
    """Return the lines in a text, out of the strings that have what is `wanted`.

    A text that is not wrapped is its own line.
    """
    text = _COLOUR.sub("", raw) if "\x1b" in raw else raw
    if "**" in text or "\\_" in text or "\\[" in text:
        text = _MARKDOWN.sub("", text)
    text = text.strip(_EDGES)
    if '"' in text and "\\u00" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    begin = wanted.search(text)
    if begin is None or depth == _DEEPEST or '"' not in text[: begin.start()]:
        return [text]
    return next(filter(None, (_in(text, wanted, one, depth) for one in (_CELL, _STRING))), [text])


def _in(text: str, wanted: re.Pattern[str], quoted: re.Pattern[str], depth: int) -> list[str]:
    """Return the lines in the quoted strings of a text."""
    found: list[str] = []
    outside, end = re.split('[{"]', text, maxsplit=1)[0], 0
    for match in quoted.finditer(text):
        if not wanted.search(text, match.start(1), match.end(1)):
            continue
        before, after = text[max(end, len(outside)) : match.start()], text[match.end() :]
        where = {**dict(_WHERE.findall(after)), **dict(_WHERE.findall(text[: match.start()]))}
        around = " ".join([f"{outside}", *where.values(), _time(before, after), ""])
        end = match.end()
        logger = _LOGGER.search(before) or _LOGGER.search(after)
        behind = f" ({logger[1]})" if logger else ""
        for line in _unquoted(match[1], quoted).split("\n"):
            if wanted.search(line):
                found += [
                    f"{around}{inner}{'' if behind in inner else behind}"
                    for inner in peeled(line, wanted, depth + 1)
                ]
    return found


def _time(before: str, after: str) -> str:
    """Return the time that an object's fields tell, those before the message first, or nothing.

    One that the keys do not call its time, such as that of an ingestion, is the last to be taken.
    """
    times = [(fields, time) for fields in (before, after) for time in TIME.finditer(fields)]
    named = [time[0] for fields, time in times if _WHEN.search(fields, 0, time.start())]
    return next(iter(named or [time[0] for _, time in times]), "")


def _unquoted(string: str, quoted: re.Pattern[str]) -> str:
    if quoted is _CELL:
        return string.replace('""', '"')
    try:
        given = str(loads(f'"{string}"', strict=False))
        return given.encode(errors="replace").decode()  # half a surrogate pair is no character
    except JSONDecodeError:
        return string
