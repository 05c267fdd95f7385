"""What may happen next in a stretch of evidence, the likeliest first, and what cannot."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.replay.besides import besides, overtaken
from reference_coordinator.replay.candidates import LATEST_MS, Candidate, Due, Mismatch
from reference_coordinator.replay.evidence import Observed, Serving
from reference_coordinator.replay.hints import Hints, extended
from reference_coordinator.replay.hypothesis import World

_AT_MS = attrgetter("at_ms")


def options_of(
    world: World, left: Sequence[Candidate], until_ms: float, hints: Hints
) -> tuple[Iterator[Candidate], float]:
    """Return what may happen next, and by when something must have.

    `left` is in order of its earliest times; the stretch that comes after it begins at `until_ms`.
    """
    if not left:
        return _at_the_end(world, until_ms, hints)
    cutoff = float("inf")
    open_now = []
    for candidate in left:
        if candidate.earliest_ms > cutoff:
            break
        cutoff = min(cutoff, candidate.latest_ms)
        open_now.append(candidate)
    if timers := internal(world, cutoff, hints):
        cutoff = min(cutoff, *(c.latest_ms for c in timers))
        open_now = [c for c in (*open_now, *timers) if c.earliest_ms <= cutoff]
    options = open_now if len(open_now) == 1 else _ranked(world, open_now, left)
    return _and_besides(world, options, cutoff), cutoff


def _at_the_end(world: World, until_ms: float, hints: Hints) -> tuple[Iterator[Candidate], float]:
    due = [c for c in internal(world, until_ms, hints) if c.earliest_ms < until_ms]
    due.sort(key=_AT_MS)
    cutoff = min(map(LATEST_MS, due), default=until_ms)
    if cutoff >= until_ms:
        # what may also happen later is tried here only where an answer asks for it
        due.insert(0, Candidate(until_ms, float("-inf"), until_ms, None))
        cutoff = until_ms
    return iter([*due, *overtaken(world, cutoff)]), cutoff


def _and_besides(world: World, options: list[Candidate], cutoff: float) -> Iterator[Candidate]:
    yield from options
    yield from besides(world, options, cutoff)


def _ranked(
    world: World, candidates: Sequence[Candidate], left: Sequence[Candidate]
) -> list[Candidate]:
    """Put what may happen next in order, the likeliest first."""
    taken: set[str] = set()  # a connection keeps its order, and so do a broker's load and unload
    options = []
    for candidate in sorted(candidates, key=lambda c: likely_ms(world, c)):
        sequence = _sequence(candidate)
        if sequence in taken:
            continue
        if sequence:
            taken.add(sequence)
        options.append(candidate)
    if all(candidate.cause is None for candidate in left):
        # at the end of evidence: what may be late, and is not told of, has not come
        options.sort(key=lambda c: isinstance(c.cause, Timer) and not c.hinted)
    if not world.group.members:
        options.sort(key=lambda c: not _led_from_here(c))
    if busy := world.parked.busy:
        options.sort(key=lambda c: isinstance(c.cause, Observed) and c.cause.connection in busy)
    return options


def blocked(world: World, option: Candidate, excuse: str) -> Mismatch | None:
    """Tell whether a request was answered already that the oracle still holds back.

    A broker takes no other request from its connection before that. A write that lets requests go
    on shows by itself what is wrong with their answers.
    """
    if isinstance(option.cause, str) or not world.parked:
        return None
    connection = option.cause.connection if isinstance(option.cause, Observed) else None
    for seen in world.answered_before(option.earliest_ms, connection):
        ahead_ms = max(option.earliest_ms - seen.answered_ms, 0.0)
        mismatch = Mismatch(
            seen.id,
            seen.answered_ms,
            "answered_early",
            "no answer yet: the request waits",
            f"answered {ahead_ms:.0f} ms before anything let it go on",
        )
        if seen.id != excuse:
            return mismatch
        world.excused = mismatch
        world.parked.remove(seen.id)
        world.yields.answered.append(seen.id)
    return None


def likely_ms(world: World, candidate: Candidate) -> float:
    """Tell when something is likely to come; what is late already, as late as it can."""
    late = isinstance(candidate.cause, Timer) and candidate.at_ms < world.now_ms
    return candidate.latest_ms if late and not candidate.hinted else candidate.at_ms


def _sequence(candidate: Candidate) -> str:
    """Name what a candidate must not overtake others of."""
    match candidate.cause:
        case Observed(response=None):
            return ""  # its connection is gone
        case Observed() as seen:
            return seen.connection
        case Serving():
            return "serving"
        case _:
            return ""


def _led_from_here(candidate: Candidate) -> bool:
    """Tell a join that, by its answer, made a group without members its own.

    The first to join leads. Whether it came first among joins that overlap shows only when the
    join phase ends, too late for a search; so that order is tried first.
    """
    seen = candidate.cause
    return (
        isinstance(seen, Observed)
        and seen.api == "JOIN_GROUP"
        and bool(seen.told.get("leader"))
        and seen.told.get("leader") == seen.told.get("memberId")
    )


def internal(world: World, until_ms: float, hints: Hints) -> list[Candidate]:
    """List the timers and write outcomes that may come before a time."""
    early = world.tolerance.early
    found = [_outcome(world, request) for request in world.next_writes()]
    if not world.may_run_out(until_ms):
        return found
    return found + [
        _ran_out(world, timer, due, hints)
        for timer, due in world.timers.items()
        if due.earliest_ms - early <= until_ms
    ]


def _outcome(world: World, request: str) -> Candidate:
    """Tell when a write may be done: by the first answer that waits for it, if there is any."""
    seen, due = world.writes[request]
    answers = [other.answered_ms for other in world.parked.values() if other.api == seen.api]
    likely = min((due.at_ms, *answers))
    return Candidate(due.earliest_ms, max(likely, world.now_ms), due.latest_ms, request)


def _ran_out(world: World, timer: Timer, due: Due, hints: Hints) -> Candidate:
    """Tell when a timer may run out."""
    earliest = due.earliest_ms - world.tolerance.early
    latest = world.latest(due.latest_ms, world.tolerance.timer)
    group, generation = world.group, world.group.generation + 1
    delay, left = world.profile.settings.initial_rebalance_delay_ms, group.initial_delay_left_ms
    extends = timer.kind is TimerKind.JOIN and group.extends_delay
    if extends:
        instant = hints.of_extension(generation, delay, left, earliest, latest)
    else:
        instant = hints.of_timer(timer, generation, earliest, latest)
    likely = due.at_ms
    if instant is None and timer.kind is TimerKind.JOIN:  # the first to be answered tells when
        first = world.parked.joined_first()
        end_ms = due.at_ms if first is None else first.answered_ms
        if extends and earliest <= end_ms < float("inf") and delay:
            likely = extended(end_ms, delay, left, earliest, latest)
        elif not extends:
            likely = max(earliest, min(latest, end_ms))
    return Candidate(
        earliest, likely if instant is None else instant, latest, timer, hinted=instant is not None
    )
