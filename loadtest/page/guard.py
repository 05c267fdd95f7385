"""What stands before every route of Locust's page, and decides who may ask.

A browser sends what any site makes it send, to 127.0.0.1 as well. So a request has to be addressed
as the page is (the name of another site may lead here, too: DNS rebinding) and, if a browser says
where it comes from, to come from the page itself. A page that others can reach than those on this
machine has a token besides, in the address that is printed.
"""

import secrets
import socket
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import psutil
from werkzeug.wrappers import Request, Response

from loadtest.errors import LoadtestError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Guard:
    """A WSGI application, not a hook of Flask: it is before flask-cors, and behind it."""

    def __init__(self, application: WSGIApplication, options: Namespace) -> None:
        """Print the address of a page with a token. Raises LoadtestError for `--web-login`."""
        if options.web_login:
            raise LoadtestError("--web-login needs accounts, and there are none; leave it out")
        self._application = application
        origins = list(_origins(options))
        self._origins = {origin.partition("://")[2]: origin for origin in origins}
        alone = options.web_host in _LOOPBACK and not options.web_host_display_name
        self._token = "" if alone else secrets.token_urlsafe()
        self._cookie = f"groupquake-{options.web_port}"  # a browser has one jar for all ports
        if self._token:
            url = f"{origins[0]}{options.web_base_path}/?token={self._token}"
            print(f"groupquake: others can reach the page; open {url}", file=sys.stderr, flush=True)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, or refuse it with 403 and one line."""
        request = Request(environ)
        if why := self._refusal(request):
            response = Response(f"groupquake: {why}\n", 403)
        else:
            response = Response.from_app(self._application, environ)
            if self._token and "token" in request.args:
                response.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict")
        for name in {*response.headers.keys()}:
            if name.lower().startswith("access-control-"):  # flask-cors lets every site read
                response.headers.remove(name)
        response.headers["Content-Security-Policy"] = "frame-ancestors 'none'"
        return response(environ, start_response)

    def _refusal(self, request: Request) -> str | None:
        host = request.headers.get("Host", "").lower()
        if (own := self._origins.get(host)) is None:
            return (
                f"the page is not at {host!r}; open it at the address that was printed, or start"
                " Locust with --web-host-display-name and yours, such as http://lab.example:8089"
            )
        if _is_of_another_page(request, own):
            return "the request comes from another page; open this one in a tab of its own"
        given = request.args.get("token") or request.cookies.get(self._cookie, "")
        if self._token and not secrets.compare_digest(given.encode(), self._token.encode()):
            return "the page needs its token; open the whole address that was printed"
        return None


def _is_of_another_page(request: Request, own: str) -> bool:
    """Tell by what browsers send, and programs do not. A link elsewhere may lead to the page.

    POST has Origin; GET has Sec-Fetch-Site on the loopback and with TLS, in old browsers Referer.
    """
    if (origin := request.headers.get("Origin")) is not None:
        return origin != own
    if (site := request.headers.get("Sec-Fetch-Site")) is not None:
        is_link = request.method == "GET" and request.headers.get("Sec-Fetch-Dest") == "document"
        return site not in ("same-origin", "none") and not is_link
    return not f"{request.headers.get('Referer', own)}/".startswith(f"{own}/")


def _origins(options: Namespace) -> Iterator[str]:
    """Yield the page's origins as browsers write them; the first is where to open it."""
    if shown := options.web_host_display_name:  # by a proxy, a tunnel or a container's host
        yield "/".join(shown.lower().split("/")[:3])
    scheme, usual = ("https", 443) if options.tls_cert and options.tls_key else ("http", 80)
    names = [options.web_host.lower(), *_LOOPBACK]
    if options.web_host in ("", "*", "0.0.0.0", "::"):  # noqa: S104 (the user chose it)
        names[0] = socket.gethostname().lower()
        names += (a.address for found in psutil.net_if_addrs().values() for a in found)
    for name in names:
        host = f"[{name}]" if ":" in name else name
        yield f"{scheme}://{host}" + f":{options.web_port}" * (options.web_port != usual)
