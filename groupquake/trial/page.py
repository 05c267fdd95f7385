"""A trial as a page: Markdown and HTML of the same tables, and the lines of a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from groupquake.trial.cells import link
from reports.judgement.clients.client_verdict import sentence
from reports.page.environment import environment_of, page_of

Json = dict[str, Any]
MARKS: Mapping[str, str] = {
    "pass": "kept",
    "fail": "**broken**",
    "unknown": "unknown",
    "not run": "not run",
    "not possible": "not possible",
}
COSTS: Mapping[str, str] = {
    "rebalances": "rebalances",
    "unowned_partition_s": "partitions without an owner, s",
    "records_twice": "records processed twice",
}
"""What a disturbance costs, by its name in a cell."""


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
                mine = [one for one in cell["findings"] if one["rule"] == rule]
                known = f"; known: {mine[0]['known']}" if mine[0]["known"] else ""
                said = sentence(mine[0], len(mine) - 1)
                yield f"{name}, {cell['experiment']}: {rule}: {said}{known}"
        for rule in broken(client):
            yield f"{name}: to mend {rule}: {trial['rules'][rule]['mend']}"


def markdown(trial: Json) -> str:
    """Return the page as Markdown."""
    return _render("trial.md.j2", trial)


def html(trial: Json) -> str:
    """Return the page as HTML."""
    return _render("trial.html.j2", trial)


def _render(name: str, trial: Json) -> str:
    environment = environment_of("groupquake.trial", "reports.page")
    environment.globals |= {"link": link, "marks": MARKS, "broken": broken, "COSTS": COSTS}
    environment.filters |= {
        "found": _found, "cost": _cost, "judged": _judged, "generation": _generation
    }  # fmt: skip
    return page_of(environment, name, **trial)


def broken(client: Json) -> list[str]:
    """Return the rules that a client broke, or may have: first those of most experiments."""
    rules = [rule for rule, of in client["rules"].items() if of in ("broken", "not certain")]
    return sorted(rules, key=lambda rule: -len(_found(client, rule)))


def _found(client: Json, rule: str) -> list[tuple[str, str, Json]]:
    """Return the experiments in which a rule was broken: what a client did, the first finding."""
    return [
        (cell["experiment"], sentence(mine[0], len(mine) - 1), mine[0])
        for cell in client["cells"]
        if (mine := [one for one in cell["findings"] if one["rule"] == rule])
    ]


def _judged(client: Json) -> int:
    """Return in how many experiments a client's verdict is known."""
    return sum(cell["client"] in ("pass", "fail") for cell in client["cells"])


def _generation(sent: Json) -> str:
    """Write the generation of a request, if there was one yet."""
    generation = sent["generation"]
    return "-" if generation is None or generation < 0 else str(generation)


def _cost(cell: Json, name: str) -> str:
    """Write what a disturbance cost, or why it is not known."""
    if cell["client"] in ("not run", "not possible"):
        return "-" if cell["client"] == "not possible" else cell["client"]
    value = cell[name]
    if value is None:
        return "not known"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
