"""The request log before 2.8: the text of a completed request in; what its JSON would say out.

Until KAFKA-10525 (2.8) the line is `RequestChannel.Request` with `Struct.toString` (read in 2.4.1
to 2.7.2): the schema's names in snake_case, all fields of the version in their order, nothing
quoted, and of bytes no more than how many they are. What that leaves open is refused, or told:

* Bytes are given as `(39 bytes)`, and as "" if there are none, as in JSON. So an assignment that is
  empty, or of another length, shows; whose partitions are in it does not, nor whether metadata of
  the same length have changed.
* A string with a comma or a brace in it is refused. (One that reads like a whole further entry of a
  list, braces and all, would be taken for that: the text is the same.)
* A field that may be null and reads `null` is null; refused where another string in the line is, or
  begins like, the id of a member of that name.
"""

import re
from typing import Any, NamedTuple, NoReturn

Json = dict[str, Any]

LATEST = 99
"""Any version that a field has had up to its last."""


class Field(NamedTuple):
    """A field of the versions `since` to `until`; `kind` is a scalar's, or a list's entries."""

    name: str
    kind: "str | tuple[Field, ...]"
    since: int = 0
    until: int = LATEST


class Form(NamedTuple):
    """The bodies of an API; from the version `flexible` on they have tagged fields (KIP-482)."""

    flexible: int
    request: tuple[Field, ...]
    response: tuple[Field, ...]


TEXT, NULLABLE, NUMBER, BYTES = "text", "nullable", "number", "bytes"
_KINDS = {
    TEXT: re.compile(r"[^,{}]*"),
    NULLABLE: re.compile(r"[^,{}]*"),
    NUMBER: re.compile(r"-?[0-9]+"),
    BYTES: re.compile(r"java\.nio\.HeapByteBuffer\[pos=0 lim=([0-9]+) cap=[0-9]+\]"),
}

_GROUP, _MEMBER = Field("group_id", TEXT), Field("member_id", TEXT)
_GENERATION, _ERROR = Field("generation_id", NUMBER), Field("error_code", NUMBER)


def _instance(since: int = 0) -> Field:
    return Field("group_instance_id", NULLABLE, since)


def _protocol(since: int) -> tuple[Field, Field]:
    return Field("protocol_type", NULLABLE, since), Field("protocol_name", NULLABLE, since)


def _throttle(since: int) -> Field:
    return Field("throttle_time_ms", NUMBER, since)


def _topics(*partition: Field) -> Field:
    partitions = Field("partitions", (Field("partition_index", NUMBER), *partition))
    return Field("topics", (Field("name", TEXT), partitions))


FORMS = {
    "JOIN_GROUP": Form(
        6,
        (
            _GROUP, Field("session_timeout_ms", NUMBER), Field("rebalance_timeout_ms", NUMBER, 1),
            _MEMBER, _instance(5), Field("protocol_type", TEXT),
            Field("protocols", (Field("name", TEXT), Field("metadata", BYTES))),
        ),
        (
            _throttle(2), _ERROR, _GENERATION, Field("protocol_name", TEXT, until=6),
            *_protocol(7), Field("leader", TEXT), _MEMBER,
            Field("members", (_MEMBER, _instance(5), Field("metadata", BYTES))),
        ),
    ),
    "SYNC_GROUP": Form(
        4,
        (
            _GROUP, _GENERATION, _MEMBER, _instance(3), *_protocol(5),
            Field("assignments", (_MEMBER, Field("assignment", BYTES))),
        ),
        (_throttle(1), _ERROR, *_protocol(5), Field("assignment", BYTES)),
    ),
    "HEARTBEAT": Form(
        4, (_GROUP, _GENERATION, _MEMBER, _instance(3)), (_throttle(1), _ERROR)
    ),
    "LEAVE_GROUP": Form(
        4,
        (_GROUP, _MEMBER._replace(until=2), Field("members", (_MEMBER, _instance()), 3)),
        (_throttle(1), _ERROR, Field("members", (_MEMBER, _instance(), _ERROR), 3)),
    ),
    "OFFSET_COMMIT": Form(
        8,
        (
            _GROUP, _GENERATION._replace(since=1), _MEMBER._replace(since=1), _instance(7),
            Field("retention_time_ms", NUMBER, 2, 4),
            _topics(
                Field("committed_offset", NUMBER), Field("committed_leader_epoch", NUMBER, 6),
                Field("commit_timestamp", NUMBER, 1, 1), Field("committed_metadata", NULLABLE),
            ),
        ),
        (_throttle(3), _topics(_ERROR)),
    ),
}  # fmt: skip
"""By API, as the message schemas of 2.4.1 to 2.7.2 have them."""

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
"""What stands between the parts of a line: twice, and it is not clear where a part ends."""


def content(text: str) -> Json:
    """Read what follows `Completed request:`. Raises ValueError where that is not unambiguous."""
    match = _LINE.fullmatch(text)
    if match is None or any(text.count(mark) != 1 for mark in _MARKS):
        raise ValueError("no completed request in the form of Kafka 2.4 to 2.7")
    api, version, client_id, correlation_id, request, response, connection, *times = match.groups()
    form = FORMS.get(api)
    if form is None:
        raise ValueError(f"{api} is no request of a group")
    bodies = _Bodies(int(version), int(version) >= form.flexible)
    return {
        "requestHeader": {
            "requestApiKeyName": api,
            "requestApiVersion": int(version),
            "clientId": client_id,
            "correlationId": int(correlation_id),
        },
        "request": bodies.read(request, form.request),
        "response": bodies.read(response, form.response),
        "connection": connection,
        **{f"{name}Ms": time for name, time in zip(_TIMES, _parts(times), strict=True)},
    }


def _parts(times: list[str]) -> list[float]:
    """Return a request's time and its parts in ms, as 2.8 would tell them: they add up.

    Before 2.5 (KafkaApis.handle) local time ran on after an answer was handed over, as long as the
    thread had to wait for its next turn. Before 2.6 throttle time stood between the remote time and
    the response queue's.
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


class _Bodies:
    """Reads the two bodies of one line, from left to right: every field must be where it is due."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.end = ",_tagged_fields={}}" if flexible else "}"
        self.null = self.like_null = False

    def read(self, text: str, fields: tuple[Field, ...]) -> Json:
        """Read a body to its end."""
        self.text, self.at = text, 0
        body = self._struct(fields)
        if self.at != len(text):
            self._refuse("more than its fields")
        if self.null and self.like_null:
            self._refuse("null, or a member of that name")
        return body

    def _struct(self, fields: tuple[Field, ...]) -> Json:
        body = {}
        before = "{"
        for field in fields:
            if field.since <= self.version <= field.until:
                self._take(f"{before}{field.name}=")
                body[_camel(field.name)] = self._value(field.kind)
                before = ","
        self._take(self.end)
        return body

    def _value(self, kind: str | tuple[Field, ...]) -> Any:
        return self._list(kind) if isinstance(kind, tuple) else self._scalar(kind)

    def _list(self, fields: tuple[Field, ...]) -> list[Json]:
        self._take("[")
        found: list[Json] = []
        while not self.text.startswith("]", self.at):
            if found:
                self._take(",")
            found.append(self._struct(fields))
        self._take("]")
        return found

    def _scalar(self, kind: str) -> str | int | None:
        match = _KINDS[kind].match(self.text, self.at)
        if match is None:
            self._refuse(f"no {kind}")
        self.at = match.end()
        if kind == NUMBER:
            return int(match[0])
        if kind == BYTES:
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


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
