"""How clients authenticate to a cluster: a properties file of a few known keys.

The keys are those of librdkafka; where the Java client has the same one, it means the same there.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chaos.errors import ChaosError
from scenarios.problems import nearest


class PropertiesError(ChaosError):
    """A client property that cannot be used; the text says where and what to do, in one line."""


def _one_of(*known: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"'{value}' is not known; {nearest(value, known)}")
        return value

    return check


def _file(value: str) -> str:
    if not Path(value).is_file():
        raise ValueError(f"no such file: {value}")
    return value


def _checks_host(value: str) -> bool:
    return _one_of("https", "none")(value) == "https"


_KEYS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "security.protocol": (
        "security_protocol",
        _one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    "sasl.mechanism": ("sasl_mechanism", _one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
    "sasl.username": ("sasl_plain_username", str),
    "sasl.password": ("sasl_plain_password", str),
    "ssl.ca.location": ("ssl_cafile", _file),
    "ssl.certificate.location": ("ssl_certfile", _file),
    "ssl.key.location": ("ssl_keyfile", _file),
    "ssl.key.password": ("ssl_password", str),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", _checks_host),
}

KEYS = tuple(_KEYS)
"""The known properties."""

_SASL_KEYS = 3


def read(file: Path) -> dict[str, str]:
    """Read a file of lines `key=value`; blank lines and those that begin with # are ignored.

    Raises PropertiesError, which names the line, for a property that cannot be used.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PropertiesError(f"{file}: cannot be read ({error}); name a text file") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if problem := _problem(key, value) if equals else "no property; write key=value":
            raise PropertiesError(f"{file}:{number}: {problem}")
        if key in found:
            raise PropertiesError(f"{file}:{number}: {key}: given twice; remove one of the two")
        found[key] = value
    return found


def _problem(key: str, value: str) -> str | None:
    if key not in _KEYS:
        return f"{key}: unknown property; {nearest(key, KEYS)}"
    try:
        _KEYS[key][1](value)
    except ValueError as error:
        return f"{key}: {error}"
    return None


def for_kafka_python(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return properties as arguments of a kafka-python client. Raises PropertiesError."""
    if problem := next(filter(None, map(_problem, properties, properties.values())), None):
        raise PropertiesError(problem)
    named = {_KEYS[key][0]: _KEYS[key][1](value) for key, value in properties.items()}
    uses_sasl = named.get("security_protocol", "").startswith("SASL_")
    given = [key for key in KEYS if key.startswith("sasl.") and key in properties]
    if given and not uses_sasl:
        raise PropertiesError(
            f"{given[0]}: needs security.protocol SASL_PLAINTEXT or SASL_SSL; set it"
        )
    if uses_sasl and len(given) < _SASL_KEYS:
        raise PropertiesError(
            "security.protocol: SASL needs sasl.mechanism, sasl.username and sasl.password;"
            f" {' and '.join(given) or 'none'} given"
        )
    return named
