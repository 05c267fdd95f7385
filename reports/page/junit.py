"""The verdict as JUnit XML, so that a build server shows it: green on `pass` alone."""

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree as ET

Json = Mapping[str, Any]


def render(verdict: Json) -> str:
    """Write one suite: comparison and expectations of each group, faults, evidence.

    What is proven wrong is a failure, what leaves the verdict unknown is an error.
    """
    suite = ET.Element("testsuite", name=str(verdict["experiment"]))
    for group in verdict["groups"]:
        mine = [found for found in verdict["findings"] if found["group"] == group and found["root"]]
        case = _case(suite, f"comparison {group}")
        _add(case, "failure", (_told(finding) for finding in mine if finding["proven"]))
        if not any(finding["proven"] for finding in mine):
            _add(case, "error", (_told(finding) for finding in mine))
    for group in verdict["groups"]:
        unmet = [item for item in verdict["expectations_unmet"] if item["group"] == group]
        # Where the evidence has gaps, a count that is off proves nothing.
        _add(
            _case(suite, f"expectations {group}"),
            "failure" if verdict["verdict"] == "fail" else "error",
            (
                f"{item['phase']}: expected {item['expected']} {item['what']}, "
                f"observed {item['observed']}"
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
    _add(_case(suite, "evidence complete"), "error", verdict["unknown_because"])
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=f"groupquake.{suite.get('name')}", name=name)


def _add(case: ET.Element, kind: str, reasons: Iterable[str]) -> None:
    """Mark a case with what is wrong with it, if anything is."""
    told = [printable(reason) for reason in reasons]
    if told:
        more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
        ET.SubElement(case, kind, message=told[0] + more).text = "\n".join(told)


def _told(finding: Json) -> str:
    log = finding["log"]
    place = f" ({log['file']}:{log['line']})" if log["file"] else ""
    return (
        f"{finding['kind']} at {finding['at_ms']:.0f}{place}: "
        f"expected {finding['expected']}; observed {finding['observed']}"
    )


def printable(text: str) -> str:
    """Replace characters that XML has no way to write."""
    return "".join(c if c in "\t\n" or " " <= c < "\ud800" or c >= "\ue000" else "�" for c in text)
