"""What Locust's page and ours say when their server goes, and when there is one again."""

import signal
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.conftest import QUIET

pytestmark = pytest.mark.browser


@pytest.fixture
def serve(locust, port):
    """Starts a Locust whose page answers, always at the same address."""

    def answers():
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/").read()
        except urllib.error.URLError:
            return None

    def start():
        child = locust("--web-port", str(port))
        child.wait_for(answers)
        return child

    return start


def test_a_page_says_that_it_lost_its_server_and_goes_on_when_it_is_back(chromium, serve, port):
    child = serve()
    thrown = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        locusts, ours = browser.new_page(), browser.new_page()
        ours.on("pageerror", lambda error: thrown.append(str(error)))
        locusts.goto(f"http://127.0.0.1:{port}/")
        ours.goto(f"http://127.0.0.1:{port}/groupquake/")
        bar, status = locusts.locator("#groupquake"), ours.get_by_role("status")
        expect(bar).to_contain_text("no run yet")
        expect(status).to_be_empty()
        child.end(signal.SIGKILL)
        expect(bar).to_contain_text("Locust has ended, or does not respond")
        expect(status).to_contain_text("Locust does not respond, or has ended")
        serve()
        expect(bar).to_contain_text("no run yet")
        expect(status).to_be_empty()
        expect(ours.get_by_role("heading", level=1)).to_have_text("No run yet")
        browser.close()
    assert thrown == []
