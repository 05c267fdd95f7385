"""The page of a forecast: the report's timeline of one course in virtual time, and a sweep."""

from itertools import islice

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from chaos.plan import Plan
from groupquake.simulate.forecast import PHASES, Forecast, courses, profile_of
from groupquake.simulate.recorded import RecordedCourse
from groupquake.simulate.sweep import MEASURES, Sweep
from reports.judgement.verdict import members_in_words
from reports.page import cost_charts, faults, wording
from reports.page.charts import timeline
from reports.page.drawn_groups import GROUPS_DRAWN
from reports.page.environment import environment_of, page_of
from scenarios import Experiment

DRAWN = 2
"""Which course is drawn: the first that is no extreme one."""
HEATS = ("#ffffff", "#fff7bc", "#fee391", "#fec44f", "#fb9a29", "#ec7014")
"""From nothing to the most (Paul Tol, YlOrBr); dark text is readable on each."""


def render(forecast: Forecast, plan: Plan, rules: str | None, sweep: Sweep | None) -> str:
    """Write the page; `rules` are the name of those that were foreseen by, if one was given."""
    of = forecast.experiment
    profile = profile_of(of, rules)
    [course] = islice(courses(of, plan, profile, RecordedCourse), DRAWN, DRAWN + 1)
    names = [group.name for group in of.workload.groups][:GROUPS_DRAWN]
    drawn = [course.drawn(name, _members(of, name)) for name in names]
    bars_each = cost_charts.BARS // len(drawn)
    figures = {"timeline": timeline(drawn, course.span)}
    for number, one in enumerate(drawn, 1):
        figures[f"owners-{number}"] = cost_charts.owners(one, course.span, bars_each)
    environment = environment_of("groupquake.simulate", "reports.page")
    environment.tests["hits_broker"] = faults.hits_broker
    return page_of(
        environment,
        "expected.html.j2",
        forecast=forecast,
        profile=profile,
        seed=plan.seed,
        verdict={"faults": course.faults},
        page={"owned": drawn, "bars_each": bars_each},
        phases=PHASES,
        figures=figures,
        cost_charts=cost_charts,
        wording=wording,
        sweep=sweep,
        measures=MEASURES,
        heats=HEATS,
        plotly=Markup(get_plotlyjs()),  # noqa: S704 (the library's own text)
    )


def _members(of: Experiment, group: str) -> str:
    kinds = [member.kind for member in of.members() if member.group == group]
    return members_in_words(kinds.count("static"), kinds.count("dynamic"))
