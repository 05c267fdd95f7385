"""Our part of Locust's page: runs of experiments, and their verdicts."""

# Locust's web interface has no types.
# mypy: disable-error-code="untyped-decorator, no-untyped-call"

import json
import webbrowser
from argparse import Namespace
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gevent
from flask import (
    Blueprint,
    Response,
    abort,
    jsonify,
    make_response,
    render_template,
    request,
    send_file,
    url_for,
)
from locust.runners import STATE_RUNNING, STATE_SPAWNING, LocalRunner

from loadtest import options
from loadtest.cluster import require_reachable
from loadtest.errors import LoadtestError
from loadtest.load_session import LoadSession
from loadtest.page import by_hand
from loadtest.page.events import stream
from loadtest.page.form import choose
from loadtest.page.guard import Guard
from loadtest.pool import POLL
from loadtest.timing import LOOK_EVERY_S, STARTED_S
from scenarios import names

OWN_BROKERS = "its own brokers"
"""What the field Host says where an experiment is offered."""


class Page:
    """Our routes on the page. Made before Locust's server takes requests."""

    def __init__(self, session: LoadSession, offered: Namespace) -> None:
        """`offered` are the initial values of the start form."""
        self._session = session
        self._given, self._offered = offered, copy(offered)
        self._starting = False
        self._started: dict[str, str] = {}
        """The form's values at the latest start of a load."""
        web_ui = session.environment.web_ui
        assert web_ui is not None, "there is a page"
        assert web_ui.app is not None, "and it is served"
        app = web_ui.app
        own = Blueprint(
            "groupquake",
            __name__,
            url_prefix=f"{offered.web_base_path or ''}/groupquake",
            template_folder="templates",
            static_folder="static",
        )
        own.add_url_rule("/", "page", self._page)
        own.add_url_rule("/state", "state", self._state)
        own.add_url_rule("/events", "events", self._events)
        own.add_url_rule(
            "/drawing/<any('figure.js','figure.css','colours.css'):name>", "drawing", _drawing
        )
        own.add_url_rule(
            "/runs/<int:number>/<any('report.html','verdict.json','junit.xml'):name>",
            "file",
            self._file,
        )
        by_hand.add_routes(own, session)
        app.register_blueprint(own)
        app.wsgi_app = Guard(app.wsgi_app, offered)  # type: ignore[method-assign]  # Flask's own way
        # keep the order of the fields of forms
        app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}
        app.json.sort_keys = False  # type: ignore[attr-defined]
        app.after_request(self._add_ours)
        self._locusts_own = app.view_functions["locust.swarm"]
        app.view_functions["locust.swarm"] = self._swarm
        if offered.open_page:
            gevent.spawn(_open, web_ui, own.url_prefix)

    def _page(self) -> str:
        return render_template("live.html")

    def _state(self) -> Response:
        """Return the state of every run of this session, the latest last."""
        return jsonify(runs=self._runs(), marks=self._session.marks())

    def _events(self) -> Response:
        """Send a browser the state of the runs and of the latest one, then changes."""
        events = stream(self._runs, lambda: self._session.feed)
        return Response(events, mimetype="text/event-stream", headers={"Cache-Control": "no-store"})

    def _runs(self) -> list[dict[str, Any]]:
        return [{"number": n, **run.shown()} for n, run in enumerate(self._session.runs, 1)]

    def _file(self, number: int, name: str) -> Response:
        """Return a file that the analysis of a run wrote."""
        try:
            return send_file(self._session.runs[number - 1].report(name))
        except (IndexError, FileNotFoundError):
            abort(404)

    def _swarm(self) -> Response:
        """Start a test with the values of the form, or change it; or return an error message."""
        run = self._session.run
        if self._starting or (run is not None and run.state == "starting"):
            return _refused("a run is starting already")
        self._starting = True
        try:
            return self._start()
        except LoadtestError as error:
            return _refused(str(error))
        finally:
            self._starting = False

    def _start(self) -> Response:
        session = self._session
        if (users := self._users()) is None:
            return make_response(self._locusts_own())
        session.started.clear()
        gevent.spawn(session.runner.start, users, session.spawn_rate)
        session.started.wait(STARTED_S)
        return jsonify(success=True, message="Swarming started", host="")

    def _users(self) -> int | None:
        """Prepare the session; return how many users to start, or None if Locust decides."""
        session = self._session
        if session.busy:
            raise LoadtestError(
                "a run is in progress, and its number of members is fixed; wait for its verdict, or"
                " press Stop"
            )
        offered = {name: getattr(self._offered, name) for name in options.form()}
        values = {name: request.form.get(name, value) for name, value in offered.items()}
        if session.runner.state in (STATE_RUNNING, STATE_SPAWNING):
            if values not in (self._started, offered):  # offered: to a page that was loaded anew
                raise LoadtestError(
                    "while a load runs, only users and ramp up change; press Stop, then New"
                )
            self._require_clients()
            return None
        if values["experiment"] != options.NO_EXPERIMENT:
            return self._users_of_run(values)
        bootstrap = request.form.get("host") or self._offered.bootstrap
        if bootstrap in ("", OWN_BROKERS):
            raise LoadtestError(
                "a load without an experiment needs a cluster; write its HOST:PORT into Host"
            )
        given = Namespace(**{**vars(self._offered), **values})
        configs = options.configs_of(given)
        require_reachable(bootstrap)
        session.choose(None)
        users = session.set_user_classes(configs)
        untouched = request.form.get("user_count") == str(self._offered.num_users)
        if not untouched:
            self._require_clients()
        session.start_load(configs, bootstrap, given.history)
        session.environment.host = self._given.bootstrap = bootstrap  # Locust hands it to workers
        self._started = values
        return users if untouched and users != self._offered.num_users else None

    def _require_clients(self) -> None:
        wanted, most = request.form.get("user_count", ""), self._session.most_users
        if wanted.isdecimal() and int(wanted) > most:
            raise LoadtestError(
                f"the load has {most} members and producers, so at most {most} users; for more,"
                " start one with more members"
            )

    def _users_of_run(self, values: dict[str, str]) -> int:
        if not isinstance(self._session.runner, LocalRunner):
            raise LoadtestError(
                "the page runs an experiment in one Locust process; leave out --master and"
                " --processes"
            )
        if values["experiment"] not in (*names(), self._offered.experiment):
            raise LoadtestError(
                f"{values['experiment']!r} is not an experiment of the list; choose one"
            )
        if request.form.get("run_time"):
            raise LoadtestError("an experiment has phases of its own; leave the run time empty")
        users = self._session.choose(choose(values, self._offered.run_option))
        self._session.environment.host = OWN_BROKERS
        return users

    def _add_ours(self, response: Response) -> Response:
        """Take the polls out of Locust's statistics, and add our status bar to its page."""
        if response.status_code != 200:
            return response
        if request.endpoint == "locust.request_stats":
            report = response.get_json()
            # files have the polls; the page leads with what a group does
            report["stats"] = [row for row in report["stats"] if row["name"] != POLL]
            if self._session.busy:  # its users may have ended; a new start has to wait
                report["state"] = STATE_RUNNING
            response.set_data(json.dumps(report))
        elif request.endpoint == "locust.index":
            script = f'<script src="{url_for("groupquake.static", filename="bar.js")}"></script>'
            html = response.get_data(as_text=True)
            response.set_data(html.replace("</body>", f"{script}</body>"))
        return response


def _refused(why: str) -> Response:
    return jsonify(success=False, message=why, host="")


def _open(web_ui: Any, path: str) -> None:
    """Open the live page in the browser, once Locust serves it."""
    while not (web_ui.server and web_ui.server.started):
        gevent.sleep(LOOK_EVERY_S)
    webbrowser.open(f"http://{web_ui.host or '127.0.0.1'}:{web_ui.port}{path}/")


def _drawing(name: str) -> Response:
    """Return a script or a style of the report, which draws the figure here, too.

    Only files are read: the reports themselves are not imported here.
    """
    spec = find_spec("reports")
    assert spec is not None, "it is installed with this package"
    assert spec.origin is not None, "it is a package on disk"
    return send_file(Path(spec.origin).parent / "page" / "templates" / name)
