"""What makes a page hard to use: axe-core's findings, and what is wider than its window."""

from collections.abc import Iterator
from itertools import product

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

SCHEMES = ("light", "dark")
WIDTHS = (1400, 390)
GRAVE = ("serious", "critical")

WIDER = """() => {
  const room = document.scrollingElement.clientWidth;
  if (document.scrollingElement.scrollWidth <= room) return [];
  const boxed = one => one !== document.body
    && (getComputedStyle(one).overflowX !== "visible" || boxed(one.parentElement));
  const wide = [...document.body.querySelectorAll("*")].filter(
    one => one.getBoundingClientRect().right > room && !boxed(one.parentElement));
  return wide.map(one => one.outerHTML.slice(0, 90)).slice(0, 5);
}"""


def views(browser: Browser) -> Iterator[tuple[str, Page]]:
    """Yield a page of each colour scheme and width, with what it is called."""
    for scheme, width in product(SCHEMES, WIDTHS):
        view = browser.new_page(
            color_scheme=scheme,  # type: ignore[arg-type] (one of its literals)
            viewport={"width": width, "height": 1000},
        )
        yield f"{scheme}, {width}", view
        view.close()


def troubles(page: Page) -> list[str]:
    """List what of a page that is shown is hard to use: nothing, if all is well."""
    for fold in page.locator("details").all():
        fold.evaluate("one => { one.open = true; }")
    found = Axe().run(page).response["violations"]
    grave = [
        f"{one['id']}: {node['target']}: {node['failureSummary']}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"][:5]
    ]
    return grave + [f"wider than the page: {one}" for one in page.evaluate(WIDER)]
