"""Why evidence, or the course of a run, does not allow a `pass`, and what would settle it."""

from collections.abc import Iterator

from reports.judgement.doubtful import AGAIN, DOUBTFUL, SETTLED_BY, Doubt, altered, failed_writes
from reports.judgement.findings import LENGTH_ALONE, possible_metadata_changes
from reports.judgement.missing import gaps as missing
from reports.judgement.results import Results
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.run_folder import RunFolder

SHOWN = 20  # how many rows of one kind are named each


def of_evidence(run: RunFolder, data: Results, profile: str | None) -> Iterator[Doubt]:
    """Say, in words, why the evidence does not allow a pass."""
    if profile is None:
        version = run.environment["kafka_version"]
        cause = (
            f"the oracle has no profile for Kafka {version}; it was replayed under the newest one"
        )
        yield Doubt(cause, "a release that `groupquake run --help` lists")
    for group in data.kip_848:
        cause = f"group {group} uses the KIP-848 protocol, which is out of scope"
        yield Doubt(cause, "members with `group.protocol=classic`")
    yield from not_whole(run, data)
    if not data.tells_bytes:
        for group in possible_metadata_changes(data.comparison):
            yield Doubt(f"group {group}: {LENGTH_ALONE}", "a run on Kafka 2.8 or newer")
    for group, count in data.partitions.items():
        if count > 1:
            cause = f"group {group}: lines of {count} offsets partitions"
            yield Doubt(
                cause, "logs of one run alone: a group has one partition of its offsets topic"
            )
    for cause in data.elections[:SHOWN]:
        yield Doubt(cause, f"{AGAIN}, with the log of every broker of the cluster")
    yield from failed_writes(run, data.bound)
    known = [*data.bound.items(), *((name, of.clients) for name, of in data.digests.items())]
    yield from (
        doubt._replace(because=f"group {group}: {kinds[kind]} {doubt.because}")
        for kind, doubt in DOUBTFUL.items()
        for group, kinds in known
        if kinds.get(kind)
    )


def not_whole(run: RunFolder, data: Results) -> Iterator[Doubt]:
    """Say what the logs and the history lack: it may prove something, or excuse a client."""
    for group in (name for name in run.experiment.group_names if name not in data.groups):
        cause = f"group {group}: no request of it in any broker's log"
        yield Doubt(
            cause, "see in the clients' logs why they did not join, and in broker's logs for all"
        )
    yield from _missing(data)
    yield from altered(run, data.altered_history)


def sure(data: Results) -> list[Disturbance]:
    """Return the gaps that are a doubt in themselves."""
    return [one for one in data.gaps if one.source is not Source.UNSEEN]


def _missing(data: Results) -> Iterator[Doubt]:
    gaps = sure(data)
    for gap in gaps[:SHOWN]:
        cause = f"evidence is missing: {missing.described(gap, data.places)}"
        yield Doubt(cause, SETTLED_BY[gap.source])
    if len(gaps) > SHOWN:
        cause = f"evidence is missing in {len(gaps) - SHOWN} more places"
        yield Doubt(cause, SETTLED_BY[gaps[-1].source])


def of_run(run: RunFolder) -> Iterator[Doubt]:
    """Say what the journal tells of a run that cannot pass."""
    for fault in run.faults:
        called = f"fault {fault['name']} on {fault['target']}"
        if not fault["verified"]:
            witness = fault["witness"] or "it was never carried out"
            settled_by = f"{AGAIN}, with more time around the fault for its effect to show"
            yield Doubt(f"{called} was not verified: {witness}", settled_by)
        if fault["open"]:
            yield Doubt(f"{called} was not put right", f"`groupquake heal`, then {AGAIN}")
    for step in run.never_began:
        yield Doubt(f"fault {step} never began", f"{AGAIN}, to its end")
    for step in run.wrongly_skipped:
        cause = f"fault {step} was skipped, which the plan does not allow"
        yield Doubt(cause, "a target that is there at the time of the fault")
    for cause in run.failures:
        yield Doubt(cause, f"mend what failed, then {AGAIN}")
    if not run.steady:
        cause = "the steady state was not met before the first fault"
        yield Doubt(cause, "a longer formation, or `steady_state` as your groups are")
    yield from cut_short(run)


def cut_short(run: RunFolder) -> Iterator[Doubt]:
    """Say that the journal does not go to the end of the run."""
    if run.aborted:
        yield Doubt("the run was aborted", f"{AGAIN}, to its end")
    elif not (run.stopped or run.completed):
        yield Doubt("the journal ends before the run did", f"{AGAIN}, to its end")
    if run.cut_off:
        cause = "the journal ends within a line: the run died, and what became of it is open"
        yield Doubt(cause, f"{AGAIN}, to its end")
