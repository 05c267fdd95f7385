"""The pytest plugin, in pytest sessions of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from groupquake import pytest_plugin
from groupquake.pytest_plugin import Outcome

pytest_plugins = ["pytester"]
HEAVY = (
    "click",
    "confluent_kafka",
    "gevent",
    "jgo",
    "locust",
    "pandas",
    "pyspark",
    "yaml",
)
PLUGIN = ("-p", "groupquake.pytest_plugin")
USES_THE_FIXTURE = """
def test_bounce(groupquake_run):
    outcome = groupquake_run("small.yaml", seed=3, set={"phases.recovery": "2s"})
    assert outcome.verdict == outcome.content["verdict"] == "pass"
    assert outcome.report.is_file()
    assert outcome.content["seed"] == 3
"""


@pytest.fixture(autouse=True)
def _not_found_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # an installation has it, too
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


def test_a_session_without_experiments_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys, json, pathlib\n"
        "def test_it():\n"
        "    pathlib.Path('modules.json').write_text(json.dumps(sorted(sys.modules)))\n"
    )
    assert pytester.runpytest_subprocess(*PLUGIN).ret == 0
    imported = json.loads((pytester.path / "modules.json").read_text())
    assert "groupquake.pytest_plugin" in imported
    assert [name for name in imported if name.startswith(HEAVY)] == []


def test_each_experiment_is_a_test_that_can_be_chosen(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_other(): pass")
    given = ("--groupquake", "demo", "--groupquake", "a.yaml", "--groupquake", "demo")
    every = pytester.runpytest_inprocess(*PLUGIN, *given, "--collect-only", "-q")
    every.stdout.fnmatch_lines(["groupquake::demo", "groupquake::a.yaml", "3 tests collected*"])
    marked = pytester.runpytest_inprocess(
        *PLUGIN, *given, "--collect-only", "-q", "-m", "groupquake"
    )
    marked.stdout.fnmatch_lines(["2/3 tests collected*"])
    one = pytester.runpytest_inprocess(*PLUGIN, *given, "--collect-only", "-q", "-k", "a.yaml")
    one.stdout.fnmatch_lines(["groupquake::a.yaml", "1/3 tests collected*"])


def test_a_wrong_experiment_fails_with_its_errors(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", wrong="name: wrong\nnonsense: 1\n")
    pytester.makepyfile("def test_it(groupquake_run): groupquake_run('missing.yaml')")
    done = pytester.runpytest_subprocess(*PLUGIN, "--groupquake", "wrong.yaml")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines_random([
        "*groupquake run wrong.yaml ended with exit code 64 and no verdict*",
        "*wrong.yaml:2: nonsense: *",
        "*missing.yaml*no such file*",
    ])  # fmt: skip
    done.stdout.no_fnmatch_line("*subprocess.Popen*")


def test_how_a_verdict_ends_a_test(pytester: pytest.Pytester) -> None:
    for verdict, unknown, ends in (
        ("pass", "fail", None),
        ("fail", "fail", pytest.fail.Exception),
        ("fail", "skip", pytest.fail.Exception),
        ("unknown", "fail", pytest.fail.Exception),
        ("unknown", "skip", pytest.skip.Exception),
    ):
        config = pytester.parseconfig(*PLUGIN, "--groupquake-unknown", unknown)
        lines = [f"verdict: {verdict}", "report: runs/a/report.html"]
        clients = {"counts": verdict == "fail", "says": ["c-1 leaves"]}
        (pytester.path / "verdict.json").write_text(json.dumps({"clients": clients}))
        says = ["your client: c-1 leaves"] if verdict == "fail" else []
        outcome = Outcome("a.yaml", verdict, lines, pytester.path)
        if ends is None:
            pytest_plugin._require_pass(outcome, config)
            continue
        with pytest.raises(ends) as ended:
            pytest_plugin._require_pass(outcome, config)
        assert str(ended.value) == "\n".join([*says, "groupquake: a.yaml", *lines])


def test_overrides_are_options_of_the_command() -> None:
    overrides = {
        "kafka": "4.3.0", "seed": 0, "keep": True, "ui": False, "image": None,
        "kafka_home": Path("/kafka"), "set": {"a.b": 1, "c": "2s"},
    }  # fmt: skip
    assert [*pytest_plugin._options(overrides)] == [
        "--kafka", "4.3.0", "--seed", "0", "--keep", "--kafka-home", "/kafka",
        "--set", "a.b=1", "--set", "c=2s",
    ]  # fmt: skip


def test_an_interrupt_reaches_the_run_and_waits_for_its_end(tmp_path: Path) -> None:
    """The child heals what it broke before the session ends."""
    (tmp_path / "child.py").write_text(
        "import signal, pathlib, sys\n"
        "pathlib.Path('ready').touch()\n"
        "print('up', flush=True)\n"
        "signal.sigwait([signal.SIGINT])\n"
        "pathlib.Path('healed').touch()\n"
    )
    program = (
        "import os, pathlib, signal, sys, threading, time\n"
        "from groupquake.pytest_plugin import _ended\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        "def interrupt():\n"
        "    while not pathlib.Path('ready').exists(): time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt).start()\n"
        "try: _ended([sys.executable, '-c', "
        "'import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]);"
        " exec(open(\"child.py\").read())'], pathlib.Path('.'))\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "interrupted", done.stderr
    assert (tmp_path / "healed").exists()


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.spark
def test_real_runs_pass_and_fail(pytester: pytest.Pytester, small: Path) -> None:
    """The fixture's run passes; the item's expects what its group does not do."""
    (pytester.path / "small.yaml").write_text(small.read_text())
    expecting = small.read_text().replace("rebalances: {min: 3, max: 4}", "rebalances: 0")
    pytester.makefile(".yaml", strict=expecting)
    pytester.makepyfile(USES_THE_FIXTURE)
    done = pytester.runpytest_subprocess(
        *PLUGIN, "--groupquake", "strict.yaml", "--groupquake-runs=kept"
    )
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "*groupquake: strict.yaml*",
            "verdict: [fu]*",  # unknown where the machine is busy
            "*number of rebalances of dynamic in the impact had to be 0*",
        ]
    )
    assert len([*(pytester.path / "kept").glob("*/verdict.json")]) >= 2
