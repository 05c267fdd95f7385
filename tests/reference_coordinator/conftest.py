"""What the tests of the oracle share."""

from operator import attrgetter

import pytest

from tests.reference_coordinator.classic.playbook import Playbook
from tests.reference_coordinator.classic.releases import PROFILES
from tests.reference_coordinator.classic.transition_check import checked_steps


@pytest.fixture(scope="session", autouse=True)
def _transitions_are_those_of_the_table():
    """Every step of every test of the oracle takes transitions of the table alone."""
    with checked_steps():
        yield


@pytest.fixture(params=PROFILES, ids=attrgetter("name"))
def profile(request, monkeypatch):
    """The profile that a test's plays run under."""
    monkeypatch.setattr(Playbook, "release", request.param)
    return request.param
