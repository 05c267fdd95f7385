"""The verdict as JUnit XML for build servers: green for `pass` only."""

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from kafka_protocol.printable import printable

Json = Mapping[str, Any]


def render(verdict: Json) -> str:
    """Write one suite: comparison and expectations of each group, faults, evidence.

    A proven finding is a failure; what makes the verdict unknown is an error.
    """
    suite = ET.Element("testsuite", name=str(verdict["experiment"]))
    for group in verdict["groups"]:
        mine = [found for found in verdict["findings"] if found["group"] == group and found["root"]]
        case = _case(suite, f"comparison {group}")
        _add(case, "failure", (_described(finding) for finding in mine if finding["proven"]))
        if not any(finding["proven"] for finding in mine):
            _add(case, "error", (_described(finding) for finding in mine))
    for group in verdict["groups"]:
        unmet = [item for item in verdict["expectations_unmet"] if item["group"] == group]
        # where the evidence has gaps, a wrong count proves nothing
        _add(
            _case(suite, f"expectations {group}"),
            "failure" if verdict["verdict"] == "fail" else "error",
            (
                f"{item['phase']}: expected {item['expected']} {item['what']}, "
                f"observed {item['observed']}"
                f"{': ' + item['because'] if 'because' in item else ''}"
                for item in unmet
            ),
        )
    unverified = [fault for fault in verdict["faults"] if not fault["verified"]]
    _add(
        _case(suite, "faults verified"),
        "error",
        (
            f"{fault['name']} on {fault['target']}: {fault['witness'] or 'never carried out'}"
            for fault in unverified
        ),
    )
    doubts = verdict["unknown_because"] or verdict.get("notes", ())
    _add(_case(suite, "evidence complete"), "error", doubts)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, name: str) -> ET.Element:
    return child(suite, "testcase", classname=f"groupquake.{suite.get('name')}", name=name)


def _add(case: ET.Element, kind: str, reasons: Iterable[str]) -> None:
    """Add the reasons, if there are any, as a child element of a case."""
    texts = list(reasons)
    if texts:
        more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
        child(case, kind, *texts, message=texts[0] + more)


def _described(finding: Json) -> str:
    log = finding["log"]
    places = [f"{log['file']}:{log['line']}"] if log["file"] else []
    places += [finding["history"]] if "history" in finding else []
    place = f" ({', '.join(places)})" if places else ""
    return (
        f"{finding['kind']} at {finding['at_ms']:.0f}{place}: "
        f"expected {finding['expected']}; observed {finding['observed']}"
    )


def child(parent: ET.Element, tag: str, *lines: str, **attributes: str) -> ET.Element:
    """Add an element with lines of text; characters that XML cannot hold are escapes."""
    made = ET.SubElement(parent, tag, {key: printable(text) for key, text in attributes.items()})
    made.text = "\n".join(map(printable, lines)) or None
    return made
