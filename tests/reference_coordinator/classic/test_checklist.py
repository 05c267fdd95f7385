"""Every case of the checklist has its test, and every test its case."""

from collections import Counter
from importlib import import_module
from pathlib import Path

from reference_coordinator.classic.releases import PROFILES
from tests.reference_coordinator.classic.checklist import CASES, CHECKLIST, STANDS, Stand


def stands() -> list[Stand]:
    """Return what all tests of the oracle stand for, whichever of them are run."""
    here = Path(__file__).parent
    for path in sorted(here.glob("test_*.py")):
        package = ".".join(path.relative_to(here.parents[2]).with_suffix("").parts)
        import_module(package)
    return list({(s.test.__module__, s.test.__name__): s for s in STANDS}.values())


def test_the_marked_cases_are_the_listed_ones():
    """None is forgotten, unless it is left out; none is made up, and none that is left out runs."""
    marked = {name for stand in stands() for name in stand.names}
    assert marked == {case.name for case in CASES.values() if case.left_out is None}


def test_the_list_is_of_fifty_rules_with_cases():
    """A case has one place; leaving one out empties no group, and has a sentence as its reason."""
    listed = Counter(case.name for group in CHECKLIST for case in group.cases)
    assert set(listed.values()) == {1}
    assert len(CHECKLIST) == 50
    assert all(group.rule.endswith(".") for group in CHECKLIST)
    assert all(any(case.left_out is None for case in group.cases) for group in CHECKLIST)
    reasons = [case.left_out for case in CASES.values() if case.left_out is not None]
    assert reasons
    assert all(len(reason.split()) >= 5 and reason.endswith(".") for reason in reasons)


def test_cases_run_under_every_profile_they_apply_to():
    """Where several tests share a case, they cover the profiles together."""
    covered: dict[str, set[str]] = {name: set() for name in CASES}
    for stand in stands():
        for name in stand.names:
            covered[name] |= stand.profiles
    for case in CASES.values():
        applies = {name for name, profile in PROFILES.items() if case.applies(profile)}
        assert applies, case.name
        assert case.left_out or applies <= covered[case.name], case.name
