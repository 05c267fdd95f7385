"""Changes from the command line: `workload.groups.0.session_timeout=8s`.

A path is keys and list indices (from 0) with dots between them; under `cluster.config` all the
rest is one key, since Kafka's own names have dots. A value is read as YAML.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from scenarios.document import Document, DocumentError
from scenarios.problems import Path, ScenarioError, found_in, listed, shown

Model = TypeVar("Model", bound=BaseModel)

_PROPERTIES = "cluster.config."


def override(experiment: Model, assignments: Sequence[str]) -> Model:
    """Return a copy of the experiment with the assignments applied in order.

    An assignment is `KEY=VALUE`, such as `workload.groups.0.session_timeout=8s`.

    Raises ScenarioError, one line per problem: `--set KEY=VALUE: key.path: what; what to do`. A
    problem that several assignments may have caused names them all.
    """
    data = experiment.model_dump(mode="json", by_alias=True, exclude_none=True)
    applied: dict[str, Path] = {}
    misread: list[str] = []
    for assignment in assignments:
        try:
            applied[assignment] = _assign(data, assignment)
        except ScenarioError as error:
            misread.append(f"--set {assignment}: {error}")
    if misread:
        raise ScenarioError(*misread)
    try:
        return type(experiment).model_validate(data)
    except ValidationError as error:
        problems = tuple(found_in(error, type(experiment)))
        line = lambda problem: f"{_blamed(problem.path, applied)}: {problem}"
        raise ScenarioError(*listed(problems, line)) from error


def _blamed(path: Path, applied: dict[str, Path]) -> str:
    guilty = [text for text, target in applied.items() if path[: len(target)] == target]
    return " ".join(f"--set {text}" for text in guilty or applied)


def _assign(data: dict[str, Any], assignment: str) -> Path:
    """Apply one assignment to the data; return its path. Raises ScenarioError if impossible."""
    name, equals, text = assignment.partition("=")
    if not (name and equals):
        raise ScenarioError("not KEY=VALUE; write phases.impact=30s, for example")
    *parents, last = _keys(name)
    here: Any = data
    path: list[str | int] = []
    for key in parents:
        path.append(_place(here, key, path))
        here = here.setdefault(key, {}) if isinstance(here, dict) else here[path[-1]]
    path.append(_place(here, last, path))
    here[path[-1]] = _value(text)
    return tuple(path)


def _keys(name: str) -> list[str]:
    if name.startswith(_PROPERTIES):
        return [*_PROPERTIES.split(".")[:-1], name.removeprefix(_PROPERTIES)]
    return name.split(".")


def _place(here: Any, key: str, path: list[str | int]) -> str | int:
    """Return what indexes `here`, which is what stands at `path`, by `key`."""
    if isinstance(here, dict):
        return key
    dotted = ".".join(map(str, path))
    if not isinstance(here, list):
        raise ScenarioError(f"{dotted} is {shown(here)}, with nothing inside; leave out '.{key}'")
    if key not in map(str, range(len(here))):
        raise ScenarioError(f"{dotted} has no item '{key}'; it has {len(here)}, counted from 0")
    return int(key)


def _value(text: str) -> Any:
    try:
        document = Document(text)
    except DocumentError as error:
        raise ScenarioError(f"the value is not valid YAML ({error}); put it in quotes") from error
    if document.problems:
        raise ScenarioError("; ".join(map(str, document.problems)))
    return document.data
