"""Explaining one stretch of evidence: requests whose windows overlap, and timers among them.

The likely order is tried first; where an answer contradicts it, other orders that the windows and
connections allow are searched depth first, within a budget. Stretches end where windows do, so the
search never runs further back than an overlap reaches.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reference_coordinator.errors import Error
from reference_coordinator.events import Timer, TimerKind
from reference_coordinator.replay.besides import besides, overtaken
from reference_coordinator.replay.candidates import Candidate, Due, Mismatch
from reference_coordinator.replay.evidence import Observed, Serving, Tolerance
from reference_coordinator.replay.hints import Hints, extended
from reference_coordinator.replay.likeness import alike, holds, widen
from reference_coordinator.replay.world import World

SETTLING_MS = 100.0
"""How long after it says that it has loaded a broker may still answer as one that loads (Scala)."""


@dataclass(slots=True)
class Search:
    """The outcome of one stretch.

    Without a `world`, `mismatch` is the furthest contradiction, and `furthest` the world before it;
    `expected` is what else the oracle would have answered there, had other orders been true.
    """

    world: World | None = None
    mismatch: Mismatch | None = None
    furthest: World | None = None
    expected: set[str] = field(default_factory=set)
    depth: int = -1
    steps: int = 0
    exhausted: bool = True
    reordered: bool = False

    def contradicted(self, mismatch: Mismatch, world: World, depth: int) -> None:
        """Note what speaks against an order, after `depth` events that it explains."""
        if self.mismatch is None or depth > self.depth:
            self.depth, self.mismatch, self.furthest = depth, mismatch, world
            self.expected = set()
        if (mismatch.request, mismatch.rule) == (self.mismatch.request, self.mismatch.rule):
            self.expected.add(mismatch.expected)


WIDENED = 20
"""So often windows may grow bit by bit; a timer that starts itself anew would go on for ever."""


@dataclass(slots=True)
class Level:
    """A place in the search: a world, what is left, what may come next, and by when it must."""

    world: World
    left: tuple[Candidate, ...]
    options: Iterator[Candidate]
    until_ms: float
    depth: int = 0


@dataclass(slots=True)
class Frontier:
    """The places to go on from: those with the fewest departures from the likely order first.

    So a search that went wrong early finds out as soon as one that went wrong late; among equals
    the latest comes first.
    """

    levels: list[list[Level]] = field(default_factory=list)
    known: dict[frozenset[int], list[World]] = field(default_factory=dict)
    widened: Counter[frozenset[int]] = field(default_factory=Counter)

    def is_known(self, world: World, left: tuple[Candidate, ...]) -> bool:
        """Tell whether another order led to the same; if not quite, the world holds both now."""
        key = frozenset(map(id, left))
        known = self.known.setdefault(key, [])
        for place, other in enumerate(known):
            if alike(other, world):
                if holds(other, world):
                    return True
                self.widened[key] += 1
                widen(world, other, at_will=self.widened[key] > WIDENED)
                known[place] = world
                return False
        known.append(world)
        return False

    def add(self, level: Level, departures: int) -> None:
        """Remember a place."""
        while len(self.levels) <= departures:
            self.levels.append([])
        self.levels[departures].append(level)

    def pop(self) -> tuple[Level, int] | None:
        """Return the place to go on from, and its departures; None if there is none left."""
        for departures, levels in enumerate(self.levels):
            if levels:
                return levels.pop(), departures
        return None


def explain(
    world: World, stretch: Sequence[Candidate], until_ms: float, hints: Hints, excuse: str = ""
) -> Search:
    """Find an order in which every answer of a stretch is what the oracle answers.

    `until_ms` is when the next stretch begins: what is due before belongs to this one.
    """
    search = Search()
    search.world = next(explanations(search, world, stretch, until_ms, hints, excuse), None)
    return search


def explanations(
    search: Search,
    world: World,
    stretch: Sequence[Candidate],
    until_ms: float,
    hints: Hints,
    excuse: str = "",
) -> Iterator[World]:
    """Yield the worlds that orders of a stretch lead to, the likeliest first; see `explain`."""
    frontier = Frontier()
    in_order = tuple(sorted(stretch, key=lambda candidate: candidate.earliest_ms))
    frontier.add(_level(world, in_order, until_ms, hints), 0)
    while (place := frontier.pop()) is not None:
        level, departures = place
        option = next(level.options, None)
        if option is None:
            continue
        # what goes straight on costs nothing: the budget is for trying other orders
        if search.steps >= len(stretch) + world.tolerance.search:
            search.exhausted = False
            return
        search.steps += 1
        ends = option.cause is None and not excuse
        forked = level.world if ends and level.depth else level.world.fork()
        mismatch = _blocked(forked, option, excuse) or forked.take(option, level.until_ms, excuse)
        if mismatch is not None:
            search.contradicted(mismatch, level.world, level.depth)
        elif not level.left and option.cause is None:
            search.reordered = departures > 0
            forked.odd += departures
            yield forked
            continue
        if mismatch is None and _left_no_trace(forked, option, level.world):
            # right as it is: only what was before it is tried in its place
            level.options = iter([c for c in level.options if c.earliest_ms < option.earliest_ms])
        frontier.add(level, departures + 1)
        if mismatch is None:
            left = tuple(c for c in level.left if c.cause is not option.cause)
            if departures and frontier.is_known(forked, left):
                continue
            following = _level(forked, left, until_ms, hints)
            following.depth = level.depth + 1
            frontier.add(following, departures)


def _left_no_trace(world: World, option: Candidate, before: World) -> bool:
    """Tell whether nothing changed but when sessions end; a timer may have begun anew."""
    cause = option.cause
    if world.group is not before.group or not isinstance(cause, Observed | Timer):
        return False
    if isinstance(cause, Observed):  # one that is never told of may be wrong
        return cause.id not in world.parked
    return cause not in world.timers


def _blocked(world: World, option: Candidate, excuse: str) -> Mismatch | None:
    """Tell whether a request was answered already that the oracle still holds back.

    A broker takes no other request from its connection before that. A write that lets requests go
    on shows by itself what is wrong with their answers.
    """
    if isinstance(option.cause, str):
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
        del world.parked[seen.id]
        world.yields.answered.append(seen.id)
    return None


def _level(world: World, left: tuple[Candidate, ...], until_ms: float, hints: Hints) -> Level:
    """List what may happen next, the likeliest first; `left` is in order of its earliest times."""
    if not left:
        due = [c for c in internal(world, until_ms, hints) if c.earliest_ms < until_ms]
        due.sort(key=lambda c: c.at_ms)
        if all(c.latest_ms >= until_ms for c in due):
            # what may also happen later is tried here only where an answer asks for it
            due.insert(0, Candidate(until_ms, float("-inf"), until_ms, None))
        cutoff = min((c.latest_ms for c in due), default=until_ms)
        return Level(world, left, iter([*due, *overtaken(world, cutoff)]), cutoff)
    cutoff = float("inf")
    open_now = []
    for candidate in left:
        if candidate.earliest_ms > cutoff:
            break
        cutoff = min(cutoff, candidate.latest_ms)
        open_now.append(candidate)
    timers = internal(world, cutoff, hints)
    cutoff = min(cutoff, min((c.latest_ms for c in timers), default=cutoff))
    taken: set[str] = set()  # a connection keeps its order, and so do a broker's load and unload
    options = []
    for candidate in sorted([*open_now, *timers], key=lambda c: _likely_ms(world, c)):
        if candidate.earliest_ms > cutoff:
            continue
        sequence = _sequence(candidate)
        if sequence in taken:
            continue
        if sequence:
            taken.add(sequence)
        options.append(candidate)
    if all(candidate.cause is None for candidate in left):
        # at the end of evidence: what may be late, and is not told of, has not come
        options.sort(key=lambda c: isinstance(c.cause, Timer) and not c.hinted)
    options.sort(key=lambda c: not _led_from_here(world, c))
    if busy := {seen.connection for seen in world.parked.values() if seen.response}:
        options.sort(key=lambda c: isinstance(c.cause, Observed) and c.cause.connection in busy)
    options += besides(world, options, cutoff)
    return Level(world, left, iter(options), cutoff)


def _likely_ms(world: World, candidate: Candidate) -> float:
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


def _led_from_here(world: World, candidate: Candidate) -> bool:
    """Tell a join that, by its answer, made an empty group its own.

    The first to join leads. Whether it came first among joins that overlap shows only when the
    join phase ends, too late for a search; so that order is tried first.
    """
    seen = candidate.cause
    return (
        isinstance(seen, Observed)
        and seen.api == "JOIN_GROUP"
        and not world.group.members
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
    answers = (other.answered_ms for other in world.parked.values() if other.api == seen.api)
    likely = min(due.at_ms, min(answers, default=due.at_ms))
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
        answers = (p.answered_ms for p in world.parked.values() if _joined(p))
        end_ms = min(answers, default=due.at_ms)
        if extends and earliest <= end_ms < float("inf") and delay:
            likely = extended(end_ms, delay, left, earliest, latest)
        elif not extends:
            likely = max(earliest, min(latest, end_ms))
    return Candidate(
        earliest, likely if instant is None else instant, latest, timer, hinted=instant is not None
    )


def _joined(seen: Observed) -> bool:
    """Tell a JoinGroup that was answered when the join phase ended."""
    return seen.api == "JOIN_GROUP" and seen.told.get("errorCode") == Error.NONE


def candidates_of(
    requests: Sequence[Observed], servings: Sequence[Serving], tolerance: Tolerance
) -> list[Candidate]:
    """Turn evidence into candidates, in the likely order.

    A request without response likely acted when it was sent; see `courses` for when else.
    A broker takes a group up, and gives it up, a little before or after it says so: it answers as
    one that loads somewhere between "scheduled" and "finished".
    """
    found = [
        Candidate(
            r.earliest_ms, r.at_ms, r.latest_ms if r.response else r.at_ms + tolerance.early, r
        )
        for r in requests
    ]
    ends = [s.at_ms for s in servings if s.kind == "loaded"]
    for serving in servings:
        at_ms, earliest, latest = serving.at_ms, serving.at_ms, serving.at_ms + tolerance.early
        if serving.kind == "loading":
            latest = min((end for end in ends if end >= at_ms), default=at_ms) + tolerance.early
        elif serving.kind == "loaded":
            begins = (s.at_ms for s in servings if s.kind == "loading" and s.at_ms <= at_ms)
            earliest, latest = max(begins, default=at_ms), at_ms + SETTLING_MS
        elif serving.kind == "unloaded":
            latest = at_ms + tolerance.timer
        found.append(Candidate(earliest - tolerance.early, at_ms, latest, serving))
    return sorted(found, key=lambda c: c.at_ms)


def stretches(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Cut the evidence wherever no window reaches across."""
    cut: list[list[Candidate]] = []
    reach = float("-inf")
    starts = [c.earliest_ms for c in candidates]
    for index in range(len(candidates) - 2, -1, -1):
        starts[index] = min(starts[index], starts[index + 1])
    for candidate, start in zip(candidates, starts, strict=True):
        if not cut or start > reach:
            cut.append([])
        cut[-1].append(candidate)
        reach = max(reach, candidate.latest_ms)
    return cut


def next_ms(parts: Sequence[Sequence[Candidate]], index: int) -> float | None:
    """Return when the stretch after one begins; None after the last."""
    if index + 1 == len(parts):
        return None
    following = parts[index + 1]
    if len(following) == 1:
        return following[0].earliest_ms
    return min(candidate.earliest_ms for candidate in following)


LEAVE_NO_TRACE = ("HEARTBEAT", "OFFSET_COMMIT")
"""What members ask for most, and what changes nothing but when their sessions end."""


def went_straight_on(world: World, part: Sequence[Candidate], until_ms: float | None) -> bool:
    """Take a stretch that is one right request, with nothing that could come before or after.

    Not needed for the result, which `explain` finds as well: nearly all of a long file is this.
    """
    if until_ms is None or len(part) > 1 or world.writes or world.lost:
        return False
    (candidate,) = part
    seen = candidate.cause
    if not isinstance(seen, Observed) or seen.api not in LEAVE_NO_TRACE or seen.response is None:
        return False
    if world.parked and world.answered_before(candidate.earliest_ms, seen.connection):
        return False
    if world.may_run_out(max(until_ms, candidate.latest_ms)):
        return False
    return world.went_on(candidate, seen)
