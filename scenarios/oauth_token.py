"""The token of an OAUTHBEARER client, from its client properties.

`sasl.oauthbearer.method=oidc` asks the token endpoint with the client's own credentials (RFC 6749,
4.4; KIP-768). Without it the token is an unsecured JWT (RFC 7519, 6), as librdkafka and Kafka's
test login module make them, of a config such as `principal=me`.
"""

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping

from scenarios.client_properties import Properties, PropertiesError
from scenarios.timing import TOKEN_ANSWER_S, TOKEN_LIFE_S


def token(properties: Properties) -> str:
    """Return a token, a new one at each call. Raises PropertiesError if there is none."""
    if properties.get("sasl.oauthbearer.method") == "oidc":
        return _from_endpoint(properties)
    return _unsecured(properties.get("sasl.oauthbearer.config", ""))


def _from_endpoint(properties: Properties) -> str:
    url = properties["sasl.oauthbearer.token.endpoint.url"]
    if not url.startswith(("https://", "http://")):
        raise PropertiesError(f"sasl.oauthbearer.token.endpoint.url: '{url}' is no http(s) URL")
    fields = {"grant_type": "client_credentials"}
    if scope := properties.get("sasl.oauthbearer.scope"):
        fields["scope"] = scope
    names = ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret")
    login = base64.b64encode(":".join(properties[name] for name in names).encode()).decode()
    request = urllib.request.Request(  # noqa: S310 (checked above)
        url,
        urllib.parse.urlencode(fields).encode(),
        {"Authorization": f"Basic {login}", "Accept": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TOKEN_ANSWER_S) as answer:  # noqa: S310
            return str(json.load(answer)["access_token"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        raise PropertiesError(f"{url}: gave no access token ({why})") from error


def _unsecured(config: str) -> str:
    given = dict(pair.partition("=")[::2] for pair in config.split())
    now_s = int(time.time())
    life = given.get("lifeSeconds", str(TOKEN_LIFE_S))
    if not life.isdecimal():
        raise PropertiesError(
            f"sasl.oauthbearer.config: lifeSeconds '{life}' is no number of seconds; write one"
        )
    name = given.get("principalClaimName", "sub")
    claims = {name: given.get("principal", ""), "iat": now_s, "exp": now_s + int(life)}
    return ".".join([_part({"alg": "none"}), _part(claims), ""])


def _part(content: Mapping[str, object]) -> str:
    text = json.dumps(content, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")
