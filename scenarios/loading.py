"""Where experiments come from: files and the library."""

from os import PathLike
from pathlib import Path

from pydantic import ValidationError

from scenarios.document import Document, DocumentError
from scenarios.experiment import Experiment
from scenarios.problems import ScenarioError, found_in, nearest

_LIBRARY = Path(__file__).parent / "library"


def load(path: str | PathLike[str]) -> Experiment:
    """Read an experiment from a YAML file.

    Raises ScenarioError, one line per problem: `FILE:LINE: key.path: what is wrong; what to do`.
    Problems between parts are looked for once every part is valid.
    """
    try:
        document = Document(_text(Path(path)))
    except DocumentError as error:
        raise ScenarioError(
            f"{path}:{error.line}: not valid YAML ({error}); mend the syntax"
        ) from error
    if document.data is None:
        raise ScenarioError(f"{path}:1: empty; start from one in the library: {', '.join(names())}")
    problems = list(document.problems)
    try:
        experiment = Experiment.model_validate(document.data)
    except ValidationError as error:
        problems += found_in(error, Experiment)
    if problems:
        located = sorted((document.line_of(problem.path), str(problem)) for problem in problems)
        raise ScenarioError("\n".join(f"{path}:{line}: {text}" for line, text in located))
    return experiment


def named(name: str) -> Experiment:
    """Return an experiment of the library. Raises ScenarioError if it has none of that name."""
    if name not in names():
        raise ScenarioError(f"the library has no experiment '{name}'; {nearest(name, names())}")
    return load(_LIBRARY / f"{name}.yaml")


def names() -> tuple[str, ...]:
    """Return the names of the library's experiments, sorted."""
    return tuple(sorted(path.stem for path in _LIBRARY.glob("*.yaml")))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise ScenarioError(f"{path}: no such file; check the path") from error
    except IsADirectoryError as error:
        raise ScenarioError(f"{path}: a directory; name one YAML file") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 text; save it as UTF-8") from error
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror}); mend that") from error
