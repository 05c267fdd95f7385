"""What a run ends with whose tap ends before it."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.cluster_view import ClusterView
from chaos.clusters import ClusterError
from chaos.clusters.factory import Place
from chaos.controller import Outcome
from chaos.external.cluster import ExternalCluster, Target
from chaos.journal import Journal, read
from chaos.plan import make_plan
from chaos.tap.process import TapGoneError
from groupquake import runner as runner_module
from groupquake.runner import Runner
from groupquake.signals import Signals
from scenarios import named

Ended = Callable[[Outcome | None], Outcome]


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ended:
    """Runs to an outcome, or to none, with a tap that is gone when the run looks at it again."""

    @contextmanager
    def gone(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(bootstrap="127.0.0.1:1")
        raise TapGoneError("the tap ended early (exit code 9)")

    def run(outcome: Outcome | None) -> Outcome:
        def load(*_: object) -> Outcome:
            if outcome is None:
                raise TapGoneError("the tap does not answer")
            return outcome

        monkeypatch.setattr(runner_module, "running", gone)
        monkeypatch.setattr(ClusterView, "create_topics", lambda *_: None)
        monkeypatch.setattr(Runner, "_load_through", load)
        experiment = named("demo")
        runner = Runner(
            *(experiment, make_plan(experiment, 1), tmp_path, Place(), print, Signals()),
            tap=True,
        )
        cluster = ExternalCluster(Target("id", "127.0.0.1:1", {}, None), tmp_path)
        with closing(Journal(tmp_path / "journal.jsonl")) as journal:
            return runner._load(cluster, journal)

    return run


def test_what_is_unhealed_or_aborted_is_told_all_the_same(ended: Ended, tmp_path: Path) -> None:
    outcome = ended(Outcome("SIGINT", None, ("f1.1",)))
    assert (outcome.aborted, outcome.unhealed) == ("SIGINT", ("f1.1",))
    assert isinstance(outcome.error, TapGoneError)
    (failed,) = [one for one in read(tmp_path / "journal.jsonl") if one["event"] == "failed"]
    assert "the tap ended early" in failed["error"]


def test_the_first_error_is_kept(ended: Ended) -> None:
    first = ClusterError("a broker did not start")
    assert ended(Outcome(None, first, ())).error is first


def test_before_the_plan_it_is_no_bad_usage(ended: Ended) -> None:
    with pytest.raises(ClusterError, match="the tap does not answer"):
        ended(None)
