"""What the tests of the oracle share."""

import pytest

from tests.reference_coordinator.classic.playbook import Playbook
from tests.reference_coordinator.classic.releases import runs
from tests.reference_coordinator.classic.transition_check import checked_steps


@pytest.fixture(scope="module", autouse=True)
def _transitions_are_those_of_the_table():
    """Every step of every test of the oracle takes transitions of the table alone."""
    with checked_steps():
        yield


@pytest.fixture
def play() -> Playbook:
    """A group that nobody has joined yet; anew under each profile."""
    return Playbook()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Leave to `pytest_pyfunc_call` the arguments that differ between profiles."""
    marker = metafunc.definition.get_closest_marker("under")
    if marker is not None:
        given = {"profile", *(name for _, values in marker.args[0] for name in values)}
        names = sorted(given.intersection(metafunc.fixturenames))
        if names:
            metafunc.parametrize(names, [pytest.param(*names, id=pytest.HIDDEN_PARAM)])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test under all its profiles: one case, whose failure names the profile."""
    marker = pyfuncitem.get_closest_marker("under")
    if marker is None:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    for rules, values in runs(marker.args[0]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Playbook, "release", rules)
            given = {"profile": rules, "play": Playbook(), **values}
            try:
                pyfuncitem.obj(**arguments | {n: given[n] for n in names if n in given})
            except BaseException as error:
                error.add_note(f"under the rules of {rules.name}, with {values}")
                raise
    return True
