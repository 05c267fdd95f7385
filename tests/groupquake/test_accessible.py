"""Every page is usable by keyboard and screen reader, in the dark, and on a phone."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, sync_playwright

from chaos.plan import make_plan
from groupquake.simulate.forecast import foresee
from groupquake.simulate.page import render
from groupquake.simulate.sweep import Sweep
from reports.judgement.run.forecast import Interval
from tests.conftest import QUIET
from tests.groupquake import axe
from tests.groupquake.simulate.test_forecast import bounce, experiment
from tests.groupquake.test_page_policy import PAGES

pytestmark = pytest.mark.browser
SHOWN_MS = 120_000
"""How long a page of megabytes may take on a busy machine."""


def of_a_simulation(_: Path, __: str) -> str:
    of = experiment(bounce())
    plan = make_plan(of, 1)
    costs = {"rebalances": Interval(6, 7), "unowned_partition_s": Interval(1, 2)}
    frame = pd.DataFrame([{"kind": "static, eager", "session_timeout": "6s", **costs}])
    return render(foresee(of, plan), plan, Sweep(["session_timeout"], frame, []))


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield browser
        browser.close()


@pytest.mark.parametrize("page_of", [*PAGES.values(), of_a_simulation])
def test_a_page_is_usable_light_and_dark_at_every_width(
    page_of: Callable[[Path, str], str], browser: Browser, tmp_path: Path
) -> None:
    shown = tmp_path / "page.html"
    shown.write_text(page_of(tmp_path, ""))
    found = []
    for name, page in axe.views(browser):
        page.set_default_timeout(SHOWN_MS)
        page.goto(shown.as_uri())
        found += [(name, trouble) for trouble in axe.troubles(page)]
    assert found == []
