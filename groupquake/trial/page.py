"""A trial as a page: Markdown and HTML of the same tables, and the lines of a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groupquake.trial.cells import link
from reports.judgement.clients.client_rules.findings import CLIENT_RULES
from reports.page.environment import environment_of, page_of

Json = dict[str, Any]
MARKS: Mapping[str, str] = {
    "pass": "kept",
    "fail": "**broken**",
    "unknown": "unknown",
    "not run": "not run",
    "not possible": "not possible",
}


def lines(trial: Json) -> list[str]:
    """Return the matrix as lines of a terminal: brokers, then the client, in each cell."""
    heads = ["client", *trial["experiments"]]
    rows = [
        [name, *(_short(cell) for cell in client["cells"])]
        for name, client in trial["clients"].items()
    ]
    widths = [max(len(row[at]) for row in [heads, *rows]) for at in range(len(heads))]
    found = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, *rows]
    ]
    return [*found, "", "each cell: brokers / client", *_terminal_findings(trial)]


def _short(cell: Json) -> str:
    if cell["broker"] == cell["client"] == "not possible":
        return "-"
    broken = len(cell["rules"])
    client = f"{broken} broken" if cell["client"] == "fail" else cell["client"]
    return f"{cell['broker']} / {client}"


def _terminal_findings(trial: Json) -> Iterator[str]:
    for name, client in trial["clients"].items():
        if client["why_not"]:
            yield f"{name}: not run: {client['why_not']}"
        for cell in client["cells"]:
            yield from (f"{name}, {cell['experiment']}, brokers: {why}" for why in cell["why"])
            yield from (f"{name}, {cell['experiment']}: unknown: {why}" for why in cell["doubts"])
            for rule in cell["rules"]:
                first, *others = [one for one in cell["findings"] if one["rule"] == rule]
                more = f" (and {len(others)} more)" if others else ""
                known = f"; known: {first['known']}" if first["known"] else ""
                unsure = f"; not certain: {first['unsure']}" if "unsure" in first else ""
                yield f"{name}, {cell['experiment']}: {rule}: {first['what']}{more}{known}{unsure}"


def markdown(trial: Json) -> str:
    """Return the page as Markdown."""
    return _render("trial.md.j2", trial)


def html(trial: Json) -> str:
    """Return the page as HTML."""
    return _render("trial.html.j2", trial)


def _render(name: str, trial: Json) -> str:
    environment = environment_of("groupquake.trial")
    environment.globals |= {
        "link": link,
        "marks": MARKS,
        "rules": CLIENT_RULES,
        "broken": _broken(trial),
    }
    return page_of(environment, name, **trial)


def _broken(trial: Json) -> Sequence[str]:
    """Return the rules that any client broke, in their order."""
    found = {
        rule
        for client in trial["clients"].values()
        for cell in client["cells"]
        for rule in cell["rules"]
    }
    return [rule for rule in CLIENT_RULES if rule in found]
