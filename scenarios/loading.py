"""Loads experiments from files and from the library."""

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from scenarios.document import Document, DocumentError
from scenarios.experiment import Experiment
from scenarios.listing import LIBRARY, names
from scenarios.problems import Problem, ScenarioError, found_in, listed, nearest
from scenarios.regular_files import read_regular

Model = TypeVar("Model", bound=BaseModel)


def load(path: str | PathLike[str]) -> Experiment:
    """Read an experiment from a YAML file.

    Raises ScenarioError, one line per problem: `FILE:LINE: key.path: what is wrong; what to do`.
    Cross-checks run once every part is valid.
    """
    return read(path, Experiment, f"start from one in the library: {', '.join(names())}")


def read(
    path: str | PathLike[str],
    kind: type[Model],
    when_empty: str,
    checks: Callable[[Model], Iterable[Problem]] = lambda _: (),
) -> Model:
    """Read a YAML file of any kind; `checks` run on a valid document.

    Raises ScenarioError as `load` does.
    """
    try:
        document = Document(_text(Path(path)))
    except DocumentError as error:
        raise ScenarioError(
            f"{path}:{error.line}: not valid YAML ({error}); correct the syntax"
        ) from error
    if document.data is None:
        raise ScenarioError(f"{path}:1: empty; {when_empty}")
    problems = list(document.problems)
    try:
        found = kind.model_validate(document.data)
        problems += checks(found)
    except ValidationError as error:
        problems += found_in(error, kind)
    if problems:
        problems.sort(key=lambda problem: document.line_of(problem.path))
        line = lambda problem: f"{path}:{document.line_of(problem.path)}: {problem}"
        raise ScenarioError(*listed(problems, line))
    return found


def named(name: str) -> Experiment:
    """Return an experiment of the library. Raises ScenarioError if it has none of that name."""
    if name not in names():
        raise ScenarioError(f"the library has no experiment '{name}'; {nearest(name, names())}")
    return load(LIBRARY / f"{name}.yaml")


def find(name: str) -> Experiment:
    """Return the experiment of a file, if `name` looks like a path, or else of the library.

    Raises ScenarioError if there is none.
    """
    return load(name) if _is_path(name) else named(name)


def file_of(name: str) -> Path:
    """Return the file that `find` reads an experiment from."""
    return Path(name) if _is_path(name) else LIBRARY / f"{name}.yaml"


def _is_path(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) or "/" in name


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except FileNotFoundError as error:
        raise ScenarioError(f"{path}: no such file; check the path") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 text; save it as UTF-8") from error
    except (OSError, ValueError) as error:  # a path may hold characters that none can have
        why = error.strerror if isinstance(error, OSError) else error
        raise ScenarioError(f"{path}: cannot be read ({why}); check the path") from error
