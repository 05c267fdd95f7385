"""Whom Locust's page answers: by what a request says of its host, its origin and its token."""

import http.client
import json
import re
import socket
from argparse import Namespace
from pathlib import Path

import pytest
from werkzeug.test import EnvironBuilder, run_wsgi_app

from loadtest.errors import LoadtestError
from loadtest.page.guard import Guard
from tests.loadtest.conftest import listens

PORT = 8089
OWN = f"127.0.0.1:{PORT}"
PLAIN = {
    "web_login": False, "web_host": "127.0.0.1", "web_host_display_name": None, "web_port": PORT,
    "web_base_path": "", "tls_cert": None, "tls_key": None,
}  # fmt: skip


def page(_, start_response):
    """A page that lets every site read it, as Locust's does."""
    start_response("200 OK", [("Access-Control-Allow-Origin", "*")])
    return [b"here"]


def ask(guard, method="GET", path="/", **headers):
    """Return the status, the headers and the body of what is answered."""
    named = {name.replace("_", "-"): value for name, value in {"Host": OWN, **headers}.items()}
    builder = EnvironBuilder(path, method=method, headers=named)
    body, status, replied = run_wsgi_app(guard, builder.get_environ())
    assert replied["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert not [name for name, _ in replied.items() if name.lower().startswith("access-control")]
    return int(status.split()[0]), replied, b"".join(body).decode()


FOREIGN = [
    *({"Host": host} for host in (
        *("", f"evil.example:{PORT}", "evil.example", f"127.0.0.1:{PORT + 1}", "127.0.0.1"),
        *(f"127.0.0.1.evil.example:{PORT}", f"localhost.evil.example:{PORT}", "[::1"),
    )),
    *({"Origin": origin} for origin in (
        *("null", "", "http://evil.example", f"http://evil.example:{PORT}", "http://127.0.0.1"),
        *(f"http://127.0.0.1:{PORT + 1}", f"https://{OWN}", f"http://{OWN}.evil"),
    )),
    *({"Sec_Fetch_Site": site, "Sec_Fetch_Dest": kind} for site in ("cross-site", "same-site")
      for kind in ("image", "empty", "iframe", "script", "object")),
    *({"Referer": referer} for referer in ("http://evil.example/", f"http://{OWN}.evil/")),
    {"Origin": "http://evil.example", "Sec_Fetch_Site": "same-origin"},
]  # fmt: skip
LINK = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document"}
WELCOME = [
    {},
    {"Host": f"localhost:{PORT}"},
    {"Host": f"LocalHost:{PORT}", "Origin": f"http://localhost:{PORT}"},
    {"Host": f"[::1]:{PORT}", "Origin": f"http://[::1]:{PORT}"},
    {"Origin": f"http://{OWN}", "Sec_Fetch_Site": "same-origin", "Referer": f"http://{OWN}/a/"},
    {"Sec_Fetch_Site": "none", "Sec_Fetch_Dest": "document"},
    {"Referer": f"http://{OWN}/"},
    {"Referer": f"http://{OWN}"},
    {**LINK, "Referer": "http://a.test/"},
]


def test_programs_the_page_itself_and_links_are_answered_and_other_pages_are_not():
    guard = Guard(page, Namespace(**PLAIN))
    refused = [("GET", headers) for headers in FOREIGN] + [("POST", headers) for headers in FOREIGN]
    for method, headers in (*refused, ("POST", LINK)):
        status, _, body = ask(guard, method, **headers)
        assert status == 403, (method, headers)
        assert re.fullmatch("groupquake: .*\n", body)
    for headers in WELCOME:
        assert ask(guard, **headers)[0] == 200, headers
    for headers in ({}, {"Origin": f"http://{OWN}"}):
        assert ask(guard, "POST", **headers)[0] == 200


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"web_host": ""}, f"http://{socket.gethostname().lower()}:{PORT}/"),
        (
            {"web_host": "*", "web_base_path": "/here"},
            f"http://{socket.gethostname().lower()}:{PORT}/here/",
        ),
        ({"web_host": "0.0.0.0"}, f"http://{socket.gethostname().lower()}:{PORT}/"),
        ({"web_host_display_name": "https://Lab.example/"}, "https://lab.example/"),
    ],
    ids=["no host", "base path", "all addresses", "display name"],
)
def test_a_page_that_others_reach_answers_who_has_the_token_that_is_printed(
    capsys, options, address
):
    guard = Guard(page, Namespace(**{**PLAIN, **options}))
    opened, token = re.search(r"open (\S+)\?token=(\S+)", capsys.readouterr().err).groups()
    assert opened == address
    assert ask(guard)[0] == 403
    for wrong in ("", token[:-1], f"{token}x", "%FF"):
        status, replied, body = ask(guard, path=f"/?token={wrong}", Cookie=f"a={token}")
        assert (status, replied.get("Set-Cookie")) == (403, None)
        assert "the page needs its token" in body
    status, replied, _ = ask(guard, path=f"/?token={token}")
    assert status == 200
    cookie, *attributes = replied["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= {*attributes}
    for host in (OWN, address.split("/")[2]):
        assert ask(guard, Cookie=cookie, Host=host)[0] == 200
    for foreign in ({"Host": f"evil.example:{PORT}"}, {"Origin": "http://evil.example"}):
        assert ask(guard, path=f"/?token={token}", Cookie=cookie, **foreign)[0] == 403


@pytest.mark.parametrize(
    ("options", "origin"),
    [
        ({"web_port": 80}, "http://127.0.0.1"),
        ({"web_port": 443, "tls_cert": "cert", "tls_key": "key"}, "https://127.0.0.1"),
    ],
    ids=["http", "https"],
)
def test_browsers_leave_out_the_usual_port(options, origin):
    guard = Guard(page, Namespace(**{**PLAIN, **options}))
    assert ask(guard, Host="127.0.0.1", Origin=origin)[0] == 200


def test_a_login_without_accounts_is_refused():
    with pytest.raises(LoadtestError, match="--web-login needs accounts"):
        Guard(page, Namespace(**{**PLAIN, "web_login": True}))


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


def test_the_guard_is_before_every_route_of_locust_and_nobody_else_sees_its_token(
    locust, port, tmp_path
):
    routes, file = tmp_path / "routes.json", tmp_path / "locustfile.py"
    file.write_text(WITH_ROUTES.format(file=str(routes)))
    child = locust("-f", str(file), "--web-port", str(port), "--web-host", "")
    child.wait_for(lambda: listens(port))
    token = re.search(r"\?token=(\S+)", child.output)[1]

    def ask(method, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path, headers=headers)
            with connection.getresponse() as reply:
                endless = reply.headers.get_content_type() == "text/event-stream"
                text = "" if endless else reply.read().decode(errors="replace")
                return reply.status, reply.headers, text
        finally:
            connection.close()

    served = [
        (method, re.sub("<.*?>", "1", rule))
        for rule, methods in json.loads(routes.read_text())
        for method in methods
    ]
    assert {("POST", "/stop"), ("POST", "/swarm"), ("GET", "/groupquake/state")} <= {*served}
    for route in (*served, ("GET", "/stop"), ("GET", "/nowhere"), ("OPTIONS", "/nowhere")):
        assert ask(*route)[0] == 403, route
    cookie = ask("GET", f"/?token={token}")[1]["Set-Cookie"].partition(";")[0]
    for path in (path for method, path in served if method == "GET"):
        assert ask("GET", path, Cookie=cookie)[0] in (200, 302, 404, 405), path
    logs = ask("GET", "/logs", Cookie=cookie)[2]
    assert "Starting web interface" in logs
    assert token not in logs
    process = Path("/proc", str(child.process.pid))
    assert token.encode() not in (process / "cmdline").read_bytes()
    assert token.encode() not in (process / "environ").read_bytes()
    assert child.output.count(token) == 1
