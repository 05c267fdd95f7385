"""A night as JUnit XML: a suite for each platform, a case for each run."""

from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from reports.page.junit import child, count, written

Json = dict[str, Any]


def render(night: Json) -> str:
    """Return the XML; `fail` is a failure, all other verdicts but `pass` are errors."""
    root = ET.Element("testsuites", name=night["suite"])
    for platform, runs in groupby(night["runs"], key=lambda run: run["platform"]):
        suite = child(root, "testsuite", name=f"Kafka {platform}")
        for run in runs:
            _add(suite, run, f"groupquake.{night['suite']}.{platform.replace('.', '_')}")
        count(suite)
    count(root)
    return written(root)


def _add(suite: ET.Element, run: Json, classname: str) -> None:
    case = child(
        suite,
        "testcase",
        classname=classname,
        name=f"{run['experiment']} seed {run['seed']}",
        time=str(run["took_s"] or 0),
    )
    if run["verdict"] != "pass":
        kind = "failure" if run["verdict"] == "fail" else "error"
        why = run["why"] or run["state"]
        lines = (why, f"repeat: {run['command']}", f"folder: {run['folder']}")
        child(case, kind, *lines, message=f"{run['verdict']}: {why}")
