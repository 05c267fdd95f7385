"""Whom Locust's page answers, on every route that it has."""

import http.client
import json
import re
from pathlib import Path

import pytest

from tests.loadtest.conftest import listens

WITH_ROUTES = """
import json
from pathlib import Path
from locust import events
from loadtest.locustfile import *

@events.init.add_listener
def _(environment, **_):
    rules = environment.web_ui.app.url_map.iter_rules()
    Path({file!r}).write_text(json.dumps([[rule.rule, sorted(rule.methods)] for rule in rules]))
"""


class Page:
    """A page on 127.0.0.1, asked with exactly the headers that are given, and no others."""

    def __init__(self, port, folder):
        self.port = port
        self.host = f"127.0.0.1:{port}"
        self._routes = folder / "routes.json"
        self._file = folder / "locustfile.py"
        self._file.write_text(WITH_ROUTES.format(file=str(self._routes)))

    @property
    def options(self):
        """Options of a Locust that writes its routes down."""
        return ("-f", str(self._file), "--web-port", str(self.port))

    @property
    def routes(self):
        """Every method and path that it serves, and some that it does not."""
        found = [
            (method, re.sub("<.*?>", "1", rule))
            for rule, methods in json.loads(self._routes.read_text())
            for method in methods
        ]
        assert {("POST", "/stop"), ("POST", "/swarm"), ("GET", "/groupquake/state")} <= {*found}
        return [*found, ("GET", "/stop"), ("GET", "/nowhere"), ("OPTIONS", "/nowhere")]

    def ask(self, method, path, **headers):
        """Return the status, the headers and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": self.host, **headers}.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            with connection.getresponse() as reply:
                return reply.status, reply.headers, reply.read().decode(errors="replace")
        finally:
            connection.close()

    def listens(self):
        return listens(self.port)


@pytest.fixture
def page(port, tmp_path):
    return Page(port, tmp_path)


@pytest.fixture
def child(locust, page):
    started = locust(*page.options)
    started.wait_for(page.listens)
    return started


def shared(headers):
    """Return what lets other sites read a reply, or frame it."""
    lacking = set() if headers["Content-Security-Policy"] == "frame-ancestors 'none'" else {"frame"}
    return lacking | {name for name in headers if name.lower().startswith("access-control-")}


@pytest.mark.usefixtures("child")
def test_no_route_answers_what_another_page_sends(page):
    port = page.port
    foreign = [
        *({"Host": host} for host in (
            *("", f"evil.example:{port}", "evil.example", f"127.0.0.1:{port + 1}", "127.0.0.1"),
            *(f"127.0.0.1.evil.example:{port}", f"localhost.evil.example:{port}", "[::1"),
        )),
        *({"Origin": origin} for origin in (
            *("null", "", "http://evil.example", f"http://evil.example:{port}", "http://127.0.0.1"),
            *(f"http://127.0.0.1:{port + 1}", f"https://{page.host}", f"http://{page.host}.evil"),
        )),
        *({"Sec_Fetch_Site": site, "Sec_Fetch_Dest": kind} for site in ("cross-site", "same-site")
          for kind in ("image", "empty", "iframe", "script", "object")),
        *({"Referer": referer} for referer in ("http://evil.example/", f"http://{page.host}.evil/")),
        {"Origin": "http://evil.example", "Sec_Fetch_Site": "same-origin"},
    ]  # fmt: skip
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate",
            "Sec_Fetch_Dest": "document"}  # fmt: skip
    tried = [(route, headers) for route in page.routes for headers in foreign]
    tried += [(route, link) for route in page.routes if route[0] not in ("GET", "HEAD")]
    for route, headers in tried:
        status, replied, body = page.ask(*route, **headers)
        assert (status, shared(replied)) == (403, set()), (route, headers)
        assert route[0] == "HEAD" or re.fullmatch("groupquake: .*\n", body), body
    assert json.loads(page.ask("GET", "/stats/requests")[2])["state"] == "ready"


@pytest.mark.usefixtures("child")
def test_every_route_answers_programs_the_page_itself_and_links(page):
    own = f"http://{page.host}"
    welcome = (
        {},
        {"Host": f"localhost:{page.port}"},
        {"Host": f"LocalHost:{page.port}", "Origin": f"http://localhost:{page.port}"},
        {"Host": f"[::1]:{page.port}", "Origin": f"http://[::1]:{page.port}"},
        {"Origin": own, "Sec_Fetch_Site": "same-origin", "Referer": f"{own}/groupquake/"},
        {"Sec_Fetch_Site": "none", "Sec_Fetch_Dest": "document"},
        {"Referer": f"{own}/"},
        {"Referer": own},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document", "Referer": "http://a.test/"},
    )
    gets = [path for method, path in page.routes if method == "GET"]
    for path, headers in ((path, headers) for path in gets for headers in welcome):
        status, replied, _ = page.ask("GET", path, **headers)
        assert status in (200, 302, 404, 405), (path, headers)
        assert shared(replied) == set(), (path, headers)
    assert page.ask("POST", "/stop")[0] == 200
    assert page.ask("POST", "/stop", Origin=own)[0] == 200


@pytest.mark.parametrize(
    "options",
    [
        ("--web-host", ""),
        ("--web-host", "*", "--web-base-path", "/here"),
        ("--web-host", "0.0.0.0"),
        ("--web-host-display-name", "https://Lab.example/"),
    ],
)
def test_a_page_that_others_reach_answers_who_has_the_token_that_is_printed(locust, page, options):
    child = locust(*page.options, *options)
    child.wait_for(page.listens)
    base = "/here" if "/here" in options else ""
    printed = re.search(r"open (https?://[^/]+)(/.*)\?token=(\S+)", child.output)
    assert printed, child.output
    origin, path, token = printed.groups()
    assert path == f"{base}/"
    state = f"{base}/groupquake/state"

    if not base:
        for route in page.routes:
            assert page.ask(*route)[0] == 403, route
    for wrong in ("", token[:-1], f"{token}x", "%FF"):
        status, replied, body = page.ask("GET", f"{state}?token={wrong}", Cookie=f"a={token}")
        assert (status, replied["Set-Cookie"]) == (403, None)
        assert "the page needs its token" in body
    status, replied, _ = page.ask("GET", f"{path}?token={token}")
    assert status == 200
    cookie, *attributes = replied["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= {*attributes}
    assert page.ask("GET", state, Cookie=cookie)[0] == 200
    assert page.ask("GET", state, Cookie=cookie, Host=origin.partition("//")[2])[0] == 200
    for foreign in ({"Host": f"evil.example:{page.port}"}, {"Origin": "http://evil.example"}):
        assert page.ask("GET", f"{state}?token={token}", Cookie=cookie, **foreign)[0] == 403

    process = Path("/proc", str(child.process.pid))
    logs = page.ask("GET", f"{base}/logs", Cookie=cookie)[2]
    assert "Starting web interface" in logs
    assert token not in logs
    assert token.encode() not in (process / "cmdline").read_bytes()
    assert token.encode() not in (process / "environ").read_bytes()
    assert child.output.count(token) == 1


def test_a_login_without_accounts_is_refused(locust, page):
    child = locust(*page.options, "--web-login")
    assert child.process.wait(timeout=60) == 64
    assert "groupquake: --web-login needs accounts" in child.output
    assert "Traceback" not in child.output
