"""Member ids in texts: what a coordinator puts behind a client's or an instance's name.

It is a UUID; for a static member 2.3.0 took a time, in milliseconds (KAFKA-8715).
"""

import re

_SUFFIX = r"-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{13})"
_ID = re.compile(rf"(.*){_SUFFIX}")
_IN_TEXT = re.compile(rf"[^\s,()\[\]]*{_SUFFIX}(?![\w-])", re.ASCII)


def client_of(member: str) -> str:
    """Return the client id, or the instance id of a static member, that a member id begins with."""
    match = _ID.fullmatch(member)
    return match[1] if match else member


def without_ids(text: str) -> tuple[str, list[str]]:
    """Return a text with `…` in place of each member id, and the ids in their order."""
    return _IN_TEXT.sub("…", text), _IN_TEXT.findall(text)
