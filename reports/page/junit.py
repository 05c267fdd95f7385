"""The verdict as JUnit XML for build servers: green for `pass` only."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from kafka_protocol.printable import printable
from reports.judgement.clients.client_verdict import by_rule, sentence
from reports.judgement.explained.explain import by_cause

Json = Mapping[str, Any]
OUTPUT = "system-out"  # what a green case has to say


def render(verdict: Json) -> str:
    """Write one suite: comparison and expectations of each group, faults, evidence.

    A proven finding is a failure; what makes the verdict unknown is an error; what does not count
    is output.
    """
    suite = ET.Element("testsuite", name=str(verdict["experiment"]))
    for group in verdict["groups"]:
        mine = [found for found in verdict["findings"] if found["group"] == group and found["root"]]
        proven = [finding for finding in mine if finding["proven"]]
        kind = "failure" if proven else "error"
        _add(suite, f"comparison {group}", map(_described, by_cause(proven or mine)), kind)
    # where the evidence has gaps, a wrong count proves nothing
    is_fail = verdict["verdict"] == "fail" and not verdict["clients"]["alone"]
    kind = "failure" if is_fail else "error"
    for group in verdict["groups"]:
        unmet = (one for one in verdict["expectations_unmet"] if one["group"] == group)
        _add(suite, f"expectations {group}", map(_said, unmet), kind)
    for group in verdict["groups"]:
        _add_clients(suite, group, verdict["client_findings"])
    unverified = (
        f"{fault['name']} on {fault['target']}: {fault['witness'] or 'never carried out'}"
        for fault in verdict["faults"]
        if not fault["verified"]
    )
    _add(suite, "faults verified", unverified)
    reasons = zip(verdict["unknown_because"], verdict["settled_by"], strict=True)
    doubts = [f"{reason} (to settle it: {settled_by})" for reason, settled_by in reasons]
    _add(suite, "evidence complete", doubts or verdict.get("notes", ()))
    count(suite)
    return written(suite)


def _add_clients(suite: ET.Element, group: str, found: Iterable[Json]) -> None:
    """Add the case of a group's clients: findings that do not count are its output."""
    mine = [one for one in found if one["group"] == group]
    counted = [one for one in mine if one["counts"]]
    sure = [one for one in counted if "unsure" not in one]
    kind = "failure" if sure else "error" if counted else OUTPUT
    texts = (
        f"{sentence(first, len(more))} ({first['rule']}). {first['mend']}"
        for first, *more in by_rule(sure or counted or mine)
    )
    _add(suite, f"clients {group}", texts, kind)


def _add(suite: ET.Element, name: str, reasons: Iterable[str], kind: str = "error") -> None:
    """Add a case, with the reasons why it is not green as a child element."""
    case = child(suite, "testcase", classname=f"groupquake.{suite.get('name')}", name=name)
    texts = list(reasons)
    if texts:
        more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
        message = {} if kind == OUTPUT else {"message": texts[0] + more}
        child(case, kind, *texts, **message)


def _described(cause: Sequence[Json]) -> str:
    """Write the findings of one cause in a line: the sentences of the first, where, how many."""
    finding = cause[0]
    log = finding["log"]
    places = [f"{log['file']}:{log['line']}"] if log["file"] else []
    places += [finding["history"]] if "history" in finding else []
    place = f" ({', '.join(places)})" if places else ""
    more = f" And {len(cause) - 1} more like it." if len(cause) > 1 else ""
    return f"{finding['kind']}{place}: {_said(finding)}{more}"


def _said(wrong: Json) -> str:
    says = wrong["says"]
    said = f"{says['observed']} Due: {says['due']} Done: {says['done']}"
    return f"{said} About it: {wrong['page']}"


def child(parent: ET.Element, tag: str, *lines: str, **attributes: str) -> ET.Element:
    """Add an element with lines of text; characters that XML cannot hold are escapes."""
    made = ET.SubElement(parent, tag, {key: printable(text) for key, text in attributes.items()})
    made.text = "\n".join(map(printable, lines)) or None
    return made


def count(element: ET.Element) -> None:
    """Write into a suite, or all of them, how many cases it has and how many are not green."""
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        element.set(name, str(len(element.findall(f".//{tag}"))))


def written(root: ET.Element) -> str:
    """Return the text of a document."""
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
