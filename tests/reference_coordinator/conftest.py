"""What the tests of the oracle share."""

from operator import attrgetter

import pytest

from tests.reference_coordinator.classic.playbook import Playbook
from tests.reference_coordinator.classic.releases import PROFILES


@pytest.fixture(params=PROFILES, ids=attrgetter("name"))
def profile(request, monkeypatch):
    """The profile that a test's plays are played under: one after the other."""
    monkeypatch.setattr(Playbook, "release", request.param)
    return request.param
