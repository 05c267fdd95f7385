"""The request log before 2.8: parses the text of a completed request to the content of its JSON.

Until KAFKA-10525 (2.8) the line is `RequestChannel.Request` with `Struct.toString` (read in 2.4.1
to 2.7.2): the schema's names in snake_case, all fields of the version in their order, nothing
quoted, and of bytes only how many they are. The text leaves open:

* Bytes. They are given as `(39 bytes)`, and as "" if there are none, as in JSON. So an assignment
  that is empty, or of another length, shows; which partitions are in it does not, nor whether
  metadata of the same length have changed.
* A string with a comma or a brace in it: refused. (One that reads like a whole further entry of a
  list, braces and all, is taken for that: the text is the same.)
* `null` in a field that may be null: it is null; refused where another string in the line is, or
  begins like, the id of a member of that name.
"""

import re
from functools import cache
from typing import NamedTuple, NoReturn

from kafka_protocol.apis import GROUP_APIS
from kafka_protocol.bodies import BODIES, Field, Json
from kafka_protocol.versions import FIRST_FLEXIBLE

NULLABLE = "nullable"
"""The kind of a text that may be null."""
_KINDS = {
    "text": re.compile(r"[^,{}]*"),
    NULLABLE: re.compile(r"[^,{}]*"),
    "number": re.compile(r"-?[0-9]+"),
    "boolean": re.compile(r"true|false"),
    "bytes": re.compile(r"java\.nio\.HeapByteBuffer\[pos=0 lim=([0-9]+) cap=[0-9]+\]"),
}


class Slot(NamedTuple):
    """A field of one version: its name in the text and in JSON, its kind or an entry's slots."""

    text_name: str
    name: str
    kind: "str | tuple[Slot, ...]"


def _slots(fields: tuple[Field, ...], version: int) -> tuple[Slot, ...]:
    return tuple(_slot(field, version) for field in fields if field.in_version(version))


def _slot(field: Field, version: int) -> Slot:
    name = field.also or field.name  # the older of two names
    text_name = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)
    if isinstance(field.kind, tuple):
        return Slot(text_name, name, _slots(field.kind, version))
    nullable = field.null_since is not None and field.null_since <= version
    return Slot(text_name, name, NULLABLE if nullable else field.kind)


@cache
def slots_of(api: str, version: int) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    """Return the slots of an API's request and response. Raises ValueError for other APIs."""
    if api not in GROUP_APIS:
        raise ValueError(f"{api} is no request of a group")
    bodies = BODIES[api]
    return _slots(bodies.request, version), _slots(bodies.response, version)


FLEXIBLE_END = ",_tagged_fields={}}"
"""How a struct ends in versions with tagged fields (KIP-482)."""

_TIMES = ("totalTime", "requestQueueTime", "localTime", "remoteTime", "throttleTime",
          "responseQueueTime", "sendTime")  # fmt: skip
_LINE = re.compile(
    r"RequestHeader\(apiKey=([A-Z_]+), apiVersion=([0-9]+), clientId=(.*), correlationId=(-?[0-9]+)"
    r"\) -- (\{.*\}),response:(\{.*\}) from connection ([^ ;]+);"
    + ",".join(rf"{name}:([0-9.E-]+)" for name in _TIMES)
    + r",securityProtocol:[A-Z_]+,principal:.*",
    re.DOTALL,
)
_MARKS = (") -- {", "},response:{", "} from connection ", ";totalTime:")
"""The texts between the parts of a line. A line with one of them twice is ambiguous."""


def content(text: str) -> Json:
    """Read what follows `Completed request:`. Raises ValueError where that is not unambiguous."""
    match = _LINE.fullmatch(text)
    if match is None or any(text.count(mark) != 1 for mark in _MARKS):
        raise ValueError("no completed request in the form of Kafka 2.4 to 2.7")
    api, version, client_id, correlation_id, request, response, connection, *times = match.groups()
    request_slots, response_slots = slots_of(api, int(version))
    bodies = _Reader(int(version) >= FIRST_FLEXIBLE[api])
    return {
        "requestHeader": {
            "requestApiKeyName": api,
            "requestApiVersion": int(version),
            "clientId": client_id,
            "correlationId": int(correlation_id),
        },
        "request": bodies.read(request, request_slots),
        "response": bodies.read(response, response_slots),
        "connection": connection,
        **{f"{name}Ms": time for name, time in zip(_TIMES, _parts(times), strict=True)},
    }


def _parts(times: list[str]) -> list[float]:
    """Return a request's time and its parts in ms as 2.8 logs them: the parts add up.

    Before 2.5 (KafkaApis.handle) local time goes on after the response is handed over, until the
    thread is scheduled again. Before 2.6 throttle time stands between the remote time
    and the time in the response queue.
    """
    total, queue, local, remote, throttle, response_queue, send = map(float, times)
    left = total - queue - remote - response_queue - send
    if remote == 0 and local > left:
        local = left
    elif abs(left - local - throttle) < abs(left - local):
        remote += throttle
    if local < -1.0:
        raise ValueError("the parts of its time are more than the whole")
    return [total, queue, local, remote, throttle, response_queue, send]


class _Reader:
    """Reads the two bodies of one line from left to right; every field must be in its place."""

    def __init__(self, flexible: bool) -> None:
        self.end = FLEXIBLE_END if flexible else "}"
        self.null = self.like_null = False

    def read(self, text: str, slots: tuple[Slot, ...]) -> Json:
        """Read a body to its end."""
        self.text, self.at = text, 0
        body = self._struct(slots)
        if self.at != len(text):
            self._refuse("more than its fields")
        if self.null and self.like_null:
            self._refuse("null, or a member of that name")
        return body

    def _struct(self, slots: tuple[Slot, ...]) -> Json:
        body: Json = {}
        before = "{"
        for slot in slots:
            self._take(f"{before}{slot.text_name}=")
            kind = slot.kind
            body[slot.name] = self._list(kind) if isinstance(kind, tuple) else self._scalar(kind)
            before = ","
        self._take(self.end)
        return body

    def _list(self, slots: tuple[Slot, ...]) -> list[Json]:
        self._take("[")
        found: list[Json] = []
        while not self.text.startswith("]", self.at):
            if found:
                self._take(",")
            found.append(self._struct(slots))
        self._take("]")
        return found

    def _scalar(self, kind: str) -> str | int | bool | None:
        match = _KINDS[kind].match(self.text, self.at)
        if match is None:
            self._refuse(f"no {kind}")
        self.at = match.end()
        if kind == "number":
            return int(match[0])
        if kind == "boolean":
            return match[0] == "true"
        if kind == "bytes":
            return f"({match[1]} bytes)" if int(match[1]) else ""
        if kind == NULLABLE and match[0] == "null":
            self.null = True
            return None
        self.like_null |= match[0] == "null" or match[0].startswith("null-")
        return match[0]

    def _take(self, expected: str) -> None:
        if not self.text.startswith(expected, self.at):
            self._refuse(f"no {expected}")
        self.at += len(expected)

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{why} at {self.text[self.at : self.at + 40]!r}")
