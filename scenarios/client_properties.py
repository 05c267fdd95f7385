"""How clients authenticate to a cluster: a properties file of a few known keys, librdkafka's.

A value may hold `${env:NAME}` and `${file:PATH}`, so that no secret has to stand in the file. They
are read when a client needs them, and never written down.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from scenarios.problems import nearest
from scenarios.regular_files import read_regular

Properties = Mapping[str, str]
ENVIRONMENT = "GROUPQUAKE_CLIENT_PROPERTIES"
"""The variable that names the file to the processes of a load."""
TLS_ENDS_AT_TAP = "GROUPQUAKE_TLS_ENDS_AT_TAP"
"""The variable that tells them to speak without TLS: to a tap on the loopback, which adds it."""
ANONYMOUS = "ANONYMOUS"
"""Whom Kafka takes for a client that has not authenticated."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class PropertiesError(Exception):
    """A client property that cannot be used; the text says where and what to do, in one line."""


def _one_of(*known: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value not in known:
            raise ValueError(f"'{value}' is not known; {nearest(value, known)}")

    return check


def _file(value: str) -> None:
    if not Path(value).is_file():
        raise ValueError(f"no such file: {value}")


_KEYS: Mapping[str, Callable[[str], None] | None] = {
    "security.protocol": _one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "sasl.mechanism": _one_of(*MECHANISMS),
    "sasl.username": None,
    "sasl.password": None,
    "sasl.oauthbearer.method": _one_of("default", "oidc"),
    "sasl.oauthbearer.client.id": None,
    "sasl.oauthbearer.client.secret": None,
    "sasl.oauthbearer.token.endpoint.url": None,
    "sasl.oauthbearer.scope": None,
    "sasl.oauthbearer.config": None,
    "enable.sasl.oauthbearer.unsecure.jwt": _one_of("true", "false"),
    "ssl.ca.location": _file,
    "ssl.certificate.location": _file,
    "ssl.key.location": _file,
    "ssl.key.password": None,
    "ssl.endpoint.identification.algorithm": _one_of("https", "none"),
}
"""What checks the value of each known property; None if it may be any."""
KEYS = tuple(_KEYS)
"""The known properties."""
_PASSWORD = ("sasl.username", "sasl.password")
_OIDC = (
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.token.endpoint.url",
)
_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")


def read(file: Path) -> dict[str, str]:
    """Read a file of lines `key=value`; blank lines and those that begin with # are ignored.

    Raises PropertiesError, which names the line, for a property that cannot be used.
    """
    try:
        lines = read_regular(file).decode().splitlines()
    except (OSError, ValueError) as error:
        raise PropertiesError(f"{file}: cannot be read ({error}); name a text file") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        try:
            value = _REFERENCE.sub(_referenced, value)
            problem = _problem(key, value) if equals else "no property; write key=value"
        except ValueError as error:
            problem = f"{key}: {error}"
        if problem:
            raise PropertiesError(f"{file}:{number}: {problem}")
        if key in found:
            raise PropertiesError(f"{file}:{number}: {key}: given twice; remove one of the two")
        found[key] = value
    return found


def read_checked(file: Path | None) -> dict[str, str]:
    """Read a file as `read` does, and check that its properties fit together; none is empty."""
    if file is None:
        return {}
    found = read(file)
    try:
        require_whole(found)
    except PropertiesError as error:
        raise PropertiesError(f"{file}: {error}") from None
    return found


def require_whole(properties: Properties) -> None:
    """Raise PropertiesError for a property that is unknown, or does not go with the others."""
    if problem := next(filter(None, map(_problem, properties, properties.values())), None):
        raise PropertiesError(problem)
    given = [key for key in KEYS if key.startswith("sasl.") and key in properties]
    if given and not uses_sasl(properties):
        raise PropertiesError(
            f"{given[0]}: needs security.protocol SASL_PLAINTEXT or SASL_SSL; set it"
        )
    if not uses_sasl(properties):
        return
    if (mechanism := properties.get("sasl.mechanism")) == "OAUTHBEARER":
        if properties.get("sasl.oauthbearer.method") == "oidc":
            if missing := [key for key in _OIDC if key not in properties]:
                raise PropertiesError(f"sasl.oauthbearer.method: oidc needs {missing[0]}; add it")
        elif properties.get("enable.sasl.oauthbearer.unsecure.jwt") != "true":
            raise PropertiesError(
                "sasl.mechanism: OAUTHBEARER needs sasl.oauthbearer.method=oidc, or, for tests,"
                " enable.sasl.oauthbearer.unsecure.jwt=true; add one"
            )
    elif mechanism is None or not all(key in properties for key in _PASSWORD):
        raise PropertiesError(
            "security.protocol: SASL needs sasl.mechanism, sasl.username and sasl.password;"
            f" {' and '.join(given) or 'none'} given"
        )


def written(properties: Properties) -> str:
    """Return lines `key=value` for another program; its secrets stand in it as they are.

    Further lines of a value begin with a space: librdkafka's adapter alone knows that.
    """
    folded = {key: value.replace("\n", "\n ") for key, value in properties.items()}
    return "".join(f"{key}={value}\n" for key, value in folded.items())


def require_single_lines(properties: Properties) -> None:
    """Raise PropertiesError for a value of several lines."""
    for key, value in properties.items():
        if "\n" in value or "\r" in value:
            raise PropertiesError(
                f"{key}: has several lines, which programs cannot read; write one"
            )


def uses_sasl(properties: Properties) -> bool:
    """Whether clients authenticate with SASL."""
    return properties.get("security.protocol", "").startswith("SASL_")


def uses_tls(properties: Properties) -> bool:
    """Whether connections are encrypted."""
    return properties.get("security.protocol", "").endswith("SSL")


def user_of(properties: Properties) -> str:
    """Return who clients are to brokers, in the words of the properties; never a secret."""
    named = ("sasl.username", "sasl.oauthbearer.client.id", "ssl.certificate.location")
    known = (properties[key] for key in (*named, "sasl.mechanism") if key in properties)
    return next(known, ANONYMOUS)


def without_tls(properties: Properties) -> dict[str, str]:
    """Return properties for a listener on the loopback that adds TLS itself: SASL stays."""
    kept = {key: value for key, value in properties.items() if not key.startswith("ssl.")}
    if uses_tls(properties):
        kept["security.protocol"] = "SASL_PLAINTEXT" if uses_sasl(properties) else "PLAINTEXT"
    return kept


def _referenced(match: re.Match[str]) -> str:
    kind, name = match.groups()
    if kind == "env":
        if name not in os.environ:
            raise ValueError(f"the environment has no variable {name}; set it")
        return os.environ[name]
    try:
        return read_regular(Path(name)).decode().strip()
    except (OSError, ValueError) as error:
        raise ValueError(f"{name}: cannot be read; name a text file") from error


def _problem(key: str, value: str) -> str | None:
    if key not in _KEYS:
        return f"{key}: unknown property; {nearest(key, KEYS)}"
    try:
        if check := _KEYS[key]:
            check(value)
    except ValueError as error:
        return f"{key}: {error}"
    return None
