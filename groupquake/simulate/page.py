"""The page of a forecast: the report's timeline of one course in virtual time, and a sweep."""

from itertools import islice

from chaos.plan import Plan
from groupquake.simulate.forecast import PHASES, Forecast, courses
from groupquake.simulate.recorded import RecordedCourse
from groupquake.simulate.sweep import Sweep
from reports.page import faults, wording
from reports.page.charts import timeline
from reports.page.drawing import Span
from reports.page.drawn_groups import GROUPS_DRAWN
from reports.page.environment import environment_of, page_of

DRAWN = 2
"""Which course is drawn: the first that is no extreme one."""
HEATS = ("#ffffff", "#fff7bc", "#fee391", "#fec44f", "#fb9a29", "#ec7014")
"""From nothing to the most (Paul Tol, YlOrBr); dark text is readable on each."""


def render(forecast: Forecast, plan: Plan, sweep: Sweep | None) -> str:
    """Write the page."""
    drawn = courses(forecast.experiment, plan, forecast.profile, RecordedCourse)
    [course] = islice(drawn, DRAWN, DRAWN + 1)
    span = Span(course.phases[0][1], course.agenda.now_ms, course.phases, is_virtual=True)
    groups = [course.drawn(name) for name in list(course.groups)[:GROUPS_DRAWN]]
    environment = environment_of("groupquake.simulate", "reports.page")
    environment.tests["hits_broker"] = faults.hits_broker
    return page_of(
        environment,
        "expected.html.j2",
        forecast=forecast,
        seed=plan.seed,
        verdict={"faults": course.faults},
        phases=PHASES,
        figures={"timeline": timeline(groups, span)},
        wording=wording,
        sweep=sweep,
        heats=HEATS,
    )
