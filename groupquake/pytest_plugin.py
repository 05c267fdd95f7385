"""The pytest plugin: experiments as tests, beside a team's own tests of its consumer.

    pytest --groupquake rolling-bounce.yaml

collects a test for each experiment; the fixture `groupquake_run` runs one within a test. Each run
is a process of its own (`groupquake run`): nothing but pytest and the standard library is imported
here, so that other sessions stay as fast as they are.
"""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

MARKER = "groupquake"
FAIL, SKIP = "fail", "skip"
_VERDICTS = {0: "pass", 1: "fail", 2: "unknown"}
"""The verdicts by the exit code of `groupquake run`."""
_REPORT = "report: "


class NoVerdictError(Exception):
    """The experiment was not judged: it is wrong, or its cluster or its load did not work."""


@dataclass(frozen=True)
class Outcome:
    """What a run ended with. `lines` are those that it printed: headline, findings, doubts."""

    experiment: str
    verdict: str
    lines: Sequence[str]
    folder: Path

    @property
    def report(self) -> Path:
        """The page of the run."""
        return self.folder / "report.html"

    @property
    def content(self) -> dict[str, Any]:
        """The content of `verdict.json`."""
        found: dict[str, Any] = json.loads((self.folder / "verdict.json").read_text("utf-8"))
        return found

    def __str__(self) -> str:
        """Return what a test that fails prints, first what the client did if that counts."""
        clients = self.content["clients"]
        says = [f"your client: {what}" for what in clients["says"] if clients["counts"]]
        return "\n".join([*says, f"groupquake: {self.experiment}", *self.lines])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("groupquake", "experiments on Kafka consumer groups")
    group.addoption(
        "--groupquake", action="append", default=[], metavar="FILE|NAME",
        help="run this experiment as a test; may be given several times",
    )  # fmt: skip
    group.addoption(
        "--groupquake-unknown", choices=(FAIL, SKIP), default=FAIL,
        help="what a test does whose verdict is unknown (default: fail)",
    )  # fmt: skip
    group.addoption(
        "--groupquake-args", default="", metavar="ARGS",
        help="more options of `groupquake run`, such as '--kafka 3.9.1 --seed 4'",
    )  # fmt: skip
    group.addoption(
        "--groupquake-runs", default="runs", metavar="FOLDER",
        help="parent of the run folders (default: runs)",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", f"{MARKER}: an experiment that groupquake runs")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let the session collect the experiments, beside the files that it is given."""
    report = yield
    names = collector.config.getoption("--groupquake")
    if names and isinstance(collector, pytest.Session):
        report.result.append(Experiments.from_parent(collector, name=MARKER, nodeid=MARKER))
    return report


class Experiments(pytest.Collector):
    """The experiments of the command line."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each."""
        for name in dict.fromkeys(self.config.getoption("--groupquake")):
            yield Experiment.from_parent(self, name=name)


class Experiment(pytest.Item):
    """A test that runs an experiment and passes if its verdict is `pass`."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.add_marker(MARKER)

    def runtest(self) -> None:
        """Run it."""
        _require_pass(_run(self.config, self.name, ()), self.config)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Print what the run printed instead of a traceback of the plugin."""
        if isinstance(excinfo.value, NoVerdictError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where it stands and what it is called."""
        return self.config.invocation_params.dir / self.name, None, f"groupquake: {self.name}"


@pytest.fixture
def groupquake_run(pytestconfig: pytest.Config) -> Callable[..., Outcome]:
    """Run an experiment in the middle of a test, and fail the test unless it passes.

    `groupquake_run("bounce.yaml", kafka="4.3.0", seed=4, set={"phases.impact": "30s"})`: keywords
    are options of `groupquake run`, `set` changes values of the file. With `check=False` any
    verdict is returned, as an `Outcome`. An experiment that is not judged raises NoVerdictError.
    """

    def run(experiment: str | Path, *, check: bool = True, **overrides: Any) -> Outcome:
        __tracebackhide__ = True
        outcome = _run(pytestconfig, str(experiment), tuple(_options(overrides)))
        if check:
            _require_pass(outcome, pytestconfig)
        return outcome

    return run


def _options(overrides: Mapping[str, Any]) -> Iterator[str]:
    """Write overrides as options of `groupquake run`."""
    for name, value in overrides.items():
        option = f"--{name.replace('_', '-')}"
        if name == "set":
            for key, text in value.items():
                yield from (option, f"{key}={text}")
        elif value is True:
            yield option
        elif value is not False and value is not None:
            yield from (option, str(value))


def _require_pass(outcome: Outcome, config: pytest.Config) -> None:
    __tracebackhide__ = True
    if outcome.verdict == "unknown" and config.getoption("--groupquake-unknown") == SKIP:
        pytest.skip(str(outcome))
    if outcome.verdict != "pass":
        pytest.fail(str(outcome), pytrace=False)


def _run(config: pytest.Config, experiment: str, more: Sequence[str]) -> Outcome:
    """Run an experiment; its progress goes to standard error, which pytest captures."""
    __tracebackhide__ = True
    folder = config.invocation_params.dir
    runs = folder / config.getoption("--groupquake-runs")
    given = shlex.split(config.getoption("--groupquake-args"))
    code, printed = _ended(
        [sys.executable, "-m", "groupquake", "run", experiment, "--runs", str(runs), *given, *more],
        folder,
    )
    lines = [line for line in printed.splitlines() if line]
    report = next((line for line in reversed(lines) if line.startswith(_REPORT)), None)
    if code not in _VERDICTS or report is None:
        raise NoVerdictError(
            f"groupquake run {experiment} ended with exit code {code} and no verdict;"
            " the reason is in its output on standard error"
        )
    place = folder / report.removeprefix(_REPORT)
    return Outcome(experiment, _VERDICTS[code], lines, place.parent)


def _ended(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a command to its end; an interrupt is handed on, so that it heals what it broke."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        printed, _ = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    return process.returncode, printed
