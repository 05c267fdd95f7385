"""Pages of the made-up run, as a browser would read them."""

import pytest

from tests.reports.page_run import made_up
from tests.reports.reading import Page, read


@pytest.fixture(scope="session")
def passed(tmp_path_factory) -> Page:
    """The page of the run in which everything is as it has to be."""
    return read(made_up(tmp_path_factory.mktemp("pass")))


@pytest.fixture
def made(tmp_path):
    """Return that run, to be changed."""
    return made_up(tmp_path)
