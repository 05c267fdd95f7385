"""What a page of another site gets done at Locust's page, in a browser that has both open."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.conftest import QUIET
from tests.loadtest.conftest import listens

pytestmark = pytest.mark.browser

ATTACK = """<!doctype html><title>at work</title><body><script>
const target = "TARGET", form = {user_count: 1, spawn_rate: 1, static_members: 1};
const tried = [], got = [];
const loads = (element, set) => tried.push(new Promise(over => {
  element.onload = () => over(element.localName === "iframe" || got.push(element.localName));
  element.onerror = over;
  document.body.append(element);
  set(element);
}));
for (const path of ["/swarm", "/stop", "/stats/reset", "/stats/requests"]) {
  for (const referrerPolicy of ["no-referrer", "unsafe-url"]) {
    for (const how of [{mode: "no-cors"}, {credentials: "omit"}, {credentials: "include"}]) {
      for (const body of [null, new URLSearchParams(form)]) {
        const method = body ? "POST" : "GET";
        tried.push(fetch(target + path, {method, body, referrerPolicy, ...how})
          .then(reply => reply.text()).then(text => text && got.push(text), () => 0));
      }
    }
    for (const tag of ["img", "script", "iframe"]) {
      const element = document.createElement(tag);
      element.referrerPolicy = referrerPolicy;
      loads(element, made => { made.src = target + path; });
    }
  }
  const frame = document.createElement("iframe"), sent = document.createElement("form");
  frame.name = path;
  Object.assign(sent, {method: "POST", action: target + path, target: path});
  for (const [name, value] of Object.entries(form)) {
    sent.append(Object.assign(document.createElement("input"), {name, value}));
  }
  document.body.append(sent);
  loads(frame, () => sent.submit());
}
Promise.all(tried).then(() => { document.title = "done: " + JSON.stringify(got); });
</script>"""


@pytest.fixture
def elsewhere():
    """The port of a server with a page that tries all it can at the address in its query."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(ATTACK.replace("TARGET", self.path.partition("?")[2]).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def context(chromium):
    """A browser in which the names of another site lead to 127.0.0.1."""
    rebound = "--host-resolver-rules=MAP *.example 127.0.0.1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*QUIET, rebound])
        yield browser.new_context()
        browser.close()


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_only_the_page_itself_starts_and_stops(host, locust, kafka, context, elsewhere, port):
    child = locust(
        *("--web-host", host, "--web-port", str(port), "--bootstrap", kafka),
        *("--client", "wire", "--static-members", "1", "--dynamic-members", "0"),
    )
    child.wait_for(lambda: listens(port))
    url = f"http://127.0.0.1:{port}"
    printed = re.search(r"/\?token=\S+", child.output)
    assert (printed is None) == bool(host)
    page, foreign = context.new_page(), context.new_page()

    def state():
        return context.request.get(f"{url}/stats/requests").json()["state"]

    def attack():
        for name in ("evil.example", "127.0.0.1"):
            foreign.goto(f"http://{name}:{elsewhere}/?{url}")
            expect(foreign).to_have_title(re.compile("done: "))
            assert json.loads(foreign.title().removeprefix("done: ")) == [], name
        reply = foreign.goto(f"http://evil.example:{port}/")
        assert reply.status == 403
        assert "the page is not at" in reply.text()

    page.goto(url + (printed[0] if printed else ""))
    start, stop = (page.get_by_role("button", name=name, exact=True) for name in ("Start", "Stop"))
    expect(start).to_be_visible()
    attack()
    assert state() == "ready"
    start.click()
    expect(stop).to_be_visible()
    child.wait_for(lambda: state() == "running")
    attack()
    assert state() == "running"
    stop.click()
    child.wait_for(lambda: state() == "stopped")
    page.reload()
    expect(page.locator("#groupquake")).to_contain_text("no run yet")
