"""The last lines that a run prints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reports.judgement.clients.client_verdict import by_rule, sentence
from reports.judgement.expectations import described
from reports.judgement.explained.explain import by_cause
from reports.judgement.explained.pages import departures
from reports.judgement.run import forecast

SHOWN = 5


def summary(verdict: dict[str, Any], place: str | Path) -> list[str]:
    """Return lines: verdict, headline, reasons of a fail or unknown, report, repeat command."""
    expected, kafka = verdict["expected_verdict"], f"Kafka {verdict['kafka_version']}"
    if expected is None:
        expectation = ""
    elif expected["met"]:
        expectation = f", as the experiment expects for {kafka}"
    else:
        expectation = f", though the experiment expects {described(expected)} for {kafka}"
    lines = ["", f"verdict: {verdict['verdict']}{expectation}"]
    if rules := verdict.get("rules"):
        lines.append(f"  {rules}")
    lines += [f"  {line}" for line in verdict["headline"]]
    for name, group in verdict["groups"].items():
        explained, checked = group["responses_explained"], group["responses_checked"]
        lines.append(f"  {name}: {explained} of {checked} responses explained")
    departs = "departs" if verdict["verdict"] == "fail" else "may depart"
    lines += [
        f"  {name}: {departs} from KIP-345: {words}" + (f" ({page.address})" if page else "")
        for name, (words, page) in departures(verdict).items()
    ]
    causes = by_cause(verdict["findings"])
    for first, *more in causes[:SHOWN]:
        line = f"{first['log']['file']}:{first['log']['line']}"
        line = line if first["log"]["file"] else first.get("history", "no line")
        others = f", and {len(more)} more like it" if more else ""
        unsure = "" if first["proven"] else ", not proven"
        lines.append(f"  finding {first['number']} in {first['group']} ({line}{unsure}){others}")
        lines += _said(first)
    if len(causes) > SHOWN:
        lines.append(f"  and {len(causes) - SHOWN} more causes of findings in the report")
    if (shown := verdict["counterexample"]) is not None:
        of = shown["requests"] + shown["left_out"]
        lines.append(
            f"  counterexample: {place}/{shown['files'][0]} ({shown['requests']} of {of} requests"
            f" of {shown['group']}), and as a test: {shown['files'][-1]}"
        )
    for item in verdict["expectations_unmet"]:
        lines += [f"  expectation not met in {item['group']}", *_said(item)]
    lines += [f"  outside the forecast: {line}" for line in forecast.outside(verdict)]
    lines += [f"  not certain: {what}" for what in verdict.get("unsure", ())]
    lines += list(_about_clients(verdict))
    for reason, settled_by in [
        *zip(verdict["unknown_because"], verdict["settled_by"], strict=True)
    ][:SHOWN]:
        lines += [f"  unknown because {reason}", f"    to settle it: {settled_by}"]
    lines += [f"  beside that: {note}" for note in verdict.get("notes", ())[:SHOWN]]
    return [*lines, f"report: {place}/report.html", f"repeat: {verdict['repeat_command']}"]


def _said(wrong: dict[str, Any]) -> list[str]:
    """Return the sentences about a finding, or about an expectation not met, and their page."""
    says = wrong["says"]
    return [
        f"    done:     {says['done']}",
        f"    due:      {says['due']}",
        f"    observed: {says['observed']}",
        f"    about it: {wrong['page']}",
    ]


def _about_clients(verdict: dict[str, Any]) -> Iterator[str]:
    """Yield for each rule that clients broke what they did, one place, and what to mend."""
    for first, *more in by_rule(verdict["client_findings"]):
        whose = "your client" if first["counts"] else "client (shown, not counted)"
        places = (f", {one['file']}:{one['line']}" for one in first["log"][-1:])
        yield f"  {whose}: {sentence(first, len(more))} ({first['rule']}{''.join(places)})"
        yield f"    to mend it: {first['mend']}"
