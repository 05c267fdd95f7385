"""How the clients of a load authenticate: the client properties that the environment names.

The environment has the path of a file, never what it says: secrets stand in no command line, and
are handed to processes through their standard input.
"""

import os
from functools import cache
from pathlib import Path

from scenarios.client_properties import (
    ENVIRONMENT,
    TLS_ENDS_AT_TAP,
    Properties,
    read_checked,
    uses_sasl,
    uses_tls,
    without_tls,
    written,
)

_LOGIN_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}
_SECURITY = "org.apache.kafka.common.security"


@cache
def client_properties() -> Properties:
    """Return the properties of all clients of this process, in librdkafka's words.

    Raises PropertiesError for a file that cannot be used.
    """
    file = os.environ.get(ENVIRONMENT)
    found = read_checked(Path(file) if file else None)
    return without_tls(found) if os.environ.get(TLS_ENDS_AT_TAP) else found


@cache
def resolved_file() -> Path | None:
    """Return a file of the same properties for programs, in memory; None if there are none.

    Its secrets are those that references stand for, and TLS is left out if it ends at the tap. Only
    the user of this process can read it (mode 600), and it is gone with this process.
    """
    if not (properties := client_properties()):
        return None
    text = written(properties).encode()
    number = os.memfd_create("client.properties")
    os.fchmod(number, 0o600)
    with open(number, "wb", closefd=False) as file:
        file.write(text)
    return Path(f"/proc/{os.getpid()}/fd/{number}")


def java_security(properties: Properties) -> str:
    """Return lines of a Java client's properties file; it may hold secrets.

    Keys and certificates are PEM, which Java reads from 2.7 on (KIP-651); a key is PKCS #8.
    OAUTHBEARER with a token endpoint needs 3.1 (KIP-768).
    """
    lines = {"security.protocol": properties.get("security.protocol", "PLAINTEXT")}
    if uses_tls(properties):
        lines |= _java_tls(properties)
    if uses_sasl(properties):
        lines |= _java_sasl(properties)
    return "".join(f"{key}={_escaped(value)}\n" for key, value in lines.items())


def _java_tls(properties: Properties) -> dict[str, str]:
    lines: dict[str, str] = {}
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        lines["ssl.endpoint.identification.algorithm"] = ""
    if authority := properties.get("ssl.ca.location"):
        lines |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    if certificate := properties.get("ssl.certificate.location"):
        key = properties.get("ssl.key.location", certificate)
        lines |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(certificate).read_text("utf-8"),
            "ssl.keystore.key": Path(key).read_text("utf-8"),
        }
        if password := properties.get("ssl.key.password"):
            lines["ssl.key.password"] = password
    return lines


def _java_sasl(properties: Properties) -> dict[str, str]:
    mechanism = properties["sasl.mechanism"]
    lines = {"sasl.mechanism": mechanism}
    if mechanism != "OAUTHBEARER":
        options = {
            "username": properties["sasl.username"],
            "password": properties["sasl.password"],
        }
    elif properties.get("sasl.oauthbearer.method") == "oidc":
        options = {
            "clientId": properties["sasl.oauthbearer.client.id"],
            "clientSecret": properties["sasl.oauthbearer.client.secret"],
        }
        if scope := properties.get("sasl.oauthbearer.scope"):
            options["scope"] = scope
        key = "sasl.oauthbearer.token.endpoint.url"
        lines[key] = properties[key]
        lines["sasl.login.callback.handler.class"] = (
            f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
        )
    else:
        given = dict(
            pair.partition("=")[::2]
            for pair in properties.get("sasl.oauthbearer.config", "").split()
        )
        options = {"unsecuredLoginStringClaim_sub": given.get("principal", "")}
    quoted = " ".join(f'{name}="{_quoted(value)}"' for name, value in options.items())
    lines["sasl.jaas.config"] = f"{_SECURITY}.{_LOGIN_MODULES[mechanism]} required {quoted};"
    return lines


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escaped(text: str) -> str:
    """Write a value of a properties file."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")
