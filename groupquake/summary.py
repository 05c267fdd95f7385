"""The last lines that a run prints."""

from pathlib import Path
from typing import Any

from reports.judgement.expectations import described

SHOWN = 5


def summary(verdict: dict[str, Any], place: str | Path) -> str:
    """Return verdict, headline, reasons of a fail or unknown, report, and repeat command."""
    expected, kafka = verdict["foretold"], f"Kafka {verdict['kafka_version']}"
    if expected is None:
        expectation = ""
    elif expected["came_true"]:
        expectation = f", as the experiment expects for {kafka}"
    else:
        expectation = f", though the experiment expects {described(expected)} for {kafka}"
    lines = ["", f"verdict: {verdict['verdict']}{expectation}"]
    lines += [f"  {line}" for line in verdict["headline"]]
    for name, group in verdict["groups"].items():
        explained, checked = group["responses_explained"], group["responses_checked"]
        lines.append(f"  {name}: {explained} of {checked} responses explained")
    lines += [
        f"  {name}: departs from KIP-345: {', '.join(promises)}"
        for name, promises in verdict["broken_promises"].items()
    ]
    roots = [finding for finding in verdict["findings"] if finding["root"]]
    for finding in roots[:SHOWN]:
        line = f"{finding['log']['file']}:{finding['log']['line']}"
        lines += [
            f"  finding {finding['number']}: {finding['kind']} in {finding['group']} ({line})",
            f"    expected: {finding['expected']}",
            f"    observed: {finding['observed']}",
        ]
    if len(roots) > SHOWN:
        lines.append(f"  and {len(roots) - SHOWN} more findings in the report")
    if (shown := verdict["counterexample"]) is not None:
        of = shown["requests"] + shown["left_out"]
        lines.append(
            f"  counterexample: {place}/{shown['files'][0]} ({shown['requests']} of {of} requests"
            f" of {shown['group']}), and as a test: {shown['files'][-1]}"
        )
    lines += [
        f"  expected {item['expected']} {item['what']} of {item['group']} in {item['phase']}, "
        f"observed {item['observed']}"
        for item in verdict["expectations_unmet"]
    ]
    lines += [f"  unknown because {reason}" for reason in verdict["unknown_because"][:SHOWN]]
    lines += [f"report: {place}/report.html", f"repeat: {verdict['repeat_command']}"]
    return "\n".join(lines)
