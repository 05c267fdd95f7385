"""What may happen next in a stretch of evidence, the likeliest first, and what cannot.

Where no response decides what Kafka leaves open, an event is an option more than once. These are
tried last, and only where an answer is not explained without them:

- Where a static member's rejoin leaves several protocols with the most votes, Kafka picks by the
  order of a hash map: the group keeps its protocol, or takes another and rebalances. The rejoin's
  own response tells which, unless it is an error, because the instance rejoined once more before
  it was sent, or of the next generation, which may have another protocol again.
- Where the leader is not known, the member whose SyncGroup carries assignments may be it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from kafka_protocol.errors import Error
from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.rebalance import allowed_protocols
from reference_coordinator.classic.state import Group, Service, State
from reference_coordinator.replay.candidates import LATEST_MS, Candidate, Due, Mismatch
from reference_coordinator.replay.evidence import EpochEvent, ObservedRequest
from reference_coordinator.replay.hints import extended
from reference_coordinator.replay.hypothesis import Hypothesis

_AT_MS = attrgetter("at_ms")
_REMOVE = (TimerKind.SESSION, TimerKind.SYNC)


def options_of(
    hypothesis: Hypothesis, left: Sequence[Candidate], until_ms: float
) -> tuple[Iterator[Candidate], float]:
    """Return what may happen next, and by when something must have.

    `left` is in order of its earliest times; the stretch that comes after it begins at `until_ms`.
    """
    if not left:
        return _at_the_end(hypothesis, until_ms)
    cutoff = float("inf")
    open_now = []
    for candidate in left:
        if candidate.earliest_ms > cutoff:
            break
        cutoff = min(cutoff, candidate.latest_ms)
        open_now.append(candidate)
    if timers := internal(hypothesis, cutoff):
        cutoff = min(cutoff, *(c.latest_ms for c in timers))
        open_now = [c for c in (*open_now, *timers) if c.earliest_ms <= cutoff]
    options = open_now if len(open_now) == 1 else _ranked(hypothesis, open_now, left)
    return _with_alternatives(hypothesis, options, cutoff), cutoff


def _at_the_end(hypothesis: Hypothesis, until_ms: float) -> tuple[Iterator[Candidate], float]:
    due = [c for c in internal(hypothesis, until_ms) if c.earliest_ms < until_ms]
    cutoff = until_ms
    if due:
        due.sort(key=_AT_MS)
        _put_shown_first(due, hypothesis.conditions.tolerance.early)
        cutoff = min(map(LATEST_MS, due))
    if cutoff >= until_ms:
        # what may also happen later is tried here only to explain an answer
        shown = [c for c in due if c.hinted and c.at_ms < until_ms and _forms(hypothesis, c)]
        rest = [c for c in due if c not in shown]
        due = [*shown, Candidate(until_ms, float("-inf"), until_ms, None), *rest]
        cutoff = until_ms
    others = _timed_out(hypothesis, cutoff) if hypothesis.writes else ()
    return iter([*due, *others, *_overtaken(hypothesis, cutoff)]), cutoff


def _forms(hypothesis: Hypothesis, candidate: Candidate) -> bool:
    """Tell whether a timer is the initial delay of a new group.

    All its members wait for the answers to their JoinGroup: no request of theirs may have come
    before the timer that was logged after its line.
    """
    timer, group = candidate.cause, hypothesis.group
    is_join = isinstance(timer, Timer) and timer.kind is TimerKind.JOIN
    return is_join and group.previous_state is State.EMPTY


def _with_alternatives(
    hypothesis: Hypothesis, options: list[Candidate], cutoff: float
) -> Iterator[Candidate]:
    """Yield the options, and then what else they may bind, or what may happen in their place."""
    yield from options
    group = hypothesis.group
    for choose in (other_protocols, other_leaders):
        yield from [other for option in options for other in choose(group, option)]
    if hypothesis.writes:
        yield from _timed_out(hypothesis, cutoff)
    yield from _overtaken(hypothesis, cutoff)


def _ranked(
    hypothesis: Hypothesis, candidates: Sequence[Candidate], left: Sequence[Candidate]
) -> list[Candidate]:
    """Put what may happen next in order, the likeliest first."""
    taken: set[str] = set()  # a connection keeps its order, and so do a broker's load and unload
    options = []
    for candidate in sorted(candidates, key=lambda c: likely_ms(hypothesis, c)):
        sequence = _sequence(candidate)
        if sequence in taken:
            continue
        if sequence:
            taken.add(sequence)
        options.append(candidate)
    if all(candidate.cause is None for candidate in left):
        # at the end of evidence: a timer that may be late, and has no line, has not expired
        options.sort(key=lambda c: isinstance(c.cause, Timer) and not c.hinted)
    _put_shown_first(options, hypothesis.conditions.tolerance.early)
    if not hypothesis.group.members and hypothesis.group.service is Service.ACTIVE:
        options.sort(key=lambda c: not _made_itself_leader(c))
    if busy := hypothesis.pending_requests.busy:
        options.sort(
            key=lambda c: isinstance(c.cause, ObservedRequest) and c.cause.connection in busy
        )
    return options


def _put_shown_first(options: list[Candidate], early_ms: float) -> None:
    """Put timers that a line shows before those that remove members, and lack their line.

    Kafka starts sessions of a new generation and the timer of those that have not synced at the
    same moment; if they are as long, either may remove a member first. A timer that is due earlier
    by more than the reading error `early_ms` expires earlier, also after its broker stood still.
    """
    shown_ms = [c.earliest_ms for c in options if isinstance(c.cause, Timer) and c.hinted]
    if shown_ms:
        from_ms = min(shown_ms) - early_ms
        options.sort(
            key=lambda c: (
                isinstance(c.cause, Timer)
                and c.cause.kind in _REMOVE
                and not c.hinted
                and c.earliest_ms >= from_ms
            )
        )


def blocked(hypothesis: Hypothesis, option: Candidate, excuse: str) -> Mismatch | None:
    """Tell whether a request was answered already that the oracle still holds back.

    A broker takes no other request from its connection before that. A write that lets requests go
    on shows by itself what is wrong with their answers.
    """
    if isinstance(option.cause, str) or not hypothesis.pending_requests:
        return None
    connection = option.cause.connection if isinstance(option.cause, ObservedRequest) else None
    for seen in hypothesis.answered_before(option.earliest_ms, connection):
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
        hypothesis.excused = mismatch
        hypothesis.pending_requests.remove(seen.id)
        hypothesis.output.explain(seen.id)
    return None


def likely_ms(hypothesis: Hypothesis, candidate: Candidate) -> float:
    """Tell when something is likely to come; what is late already, as late as it can."""
    late = isinstance(candidate.cause, Timer) and candidate.at_ms < hypothesis.clock.now_ms
    return candidate.latest_ms if late and not candidate.hinted else candidate.at_ms


def _sequence(candidate: Candidate) -> str:
    """Name what a candidate must not overtake others of."""
    match candidate.cause:
        case ObservedRequest(response=None):
            return ""  # its connection is gone
        case ObservedRequest() as seen:
            return seen.connection
        case EpochEvent():
            return "serving"
        case _:
            return ""


def _made_itself_leader(candidate: Candidate) -> bool:
    """Tell a join that, by its answer, made a group without members its own.

    The first to join leads. Whether it came first among joins that overlap shows only when the
    join phase ends, too late for a search; so that order is tried first.
    """
    seen = candidate.cause
    return (
        isinstance(seen, ObservedRequest)
        and seen.api == "JOIN_GROUP"
        and bool(seen.response_fields.get("leader"))
        and seen.response_fields.get("leader") == seen.response_fields.get("memberId")
    )


def internal(hypothesis: Hypothesis, until_ms: float) -> list[Candidate]:
    """List the timers and write outcomes that may come before a time."""
    early = hypothesis.conditions.tolerance.early
    found = []
    if hypothesis.writes:
        done = hypothesis.writes.next_done(hypothesis.conditions)
        timed_out = {c.cause: c for c in _timed_out(hypothesis) if hypothesis.conditions.has_lines}
        found = [timed_out.get(request) or _outcome(hypothesis, request) for request in done]
    if not hypothesis.timers.may_expire(until_ms):
        return found
    return found + [
        _expiry(hypothesis, timer, due)
        for timer, due in hypothesis.timers.running.items()
        if due.earliest_ms - early <= until_ms
    ]


def _outcome(hypothesis: Hypothesis, request: str) -> Candidate:
    """Tell when a write may be done: by the first answer that waits for it, if there is any."""
    seen, due = hypothesis.writes[request]
    answers = [
        other.answered_ms for other in hypothesis.pending_requests.values() if other.api == seen.api
    ]
    likely = min((due.at_ms, *answers))
    return Candidate(due.earliest_ms, max(likely, hypothesis.clock.now_ms), due.latest_ms, request)


def _timed_out(hypothesis: Hypothesis, until_ms: float = float("inf")) -> Iterator[Candidate]:
    """Yield the writes that time out though the end of a join phase answered their requests."""
    for request, (earliest_ms, latest_ms) in hypothesis.unobserved_time_outs().items():
        if earliest_ms <= until_ms:
            at_ms = max(earliest_ms, hypothesis.clock.now_ms)
            yield Candidate(earliest_ms, at_ms, latest_ms, request, timed_out=True)


def _overtaken(hypothesis: Hypothesis, until_ms: float) -> list[Candidate]:
    """List the sessions that may end though they were restarted: at the time they would have."""
    conditions, clock = hypothesis.conditions, hypothesis.clock
    early = conditions.tolerance.early
    return [
        Candidate(
            max(due.earliest_ms - early, clock.earliest_ms),
            clock.now_ms,
            conditions.latest_expiry(due.latest_ms),
            timer,
            overtaken=True,
            of_pending=due.of_pending,
        )
        for timer, due in hypothesis.timers.overtaken.items()
        if due.earliest_ms - early <= until_ms
    ]


def _expiry(hypothesis: Hypothesis, timer: Timer, due: Due) -> Candidate:
    """Tell when a timer may expire."""
    conditions = hypothesis.conditions
    earliest = due.earliest_ms - conditions.tolerance.early
    latest = conditions.latest_expiry_of(due)
    group, generation = hypothesis.group, hypothesis.group.generation + 1
    delay = conditions.profile.settings.initial_rebalance_delay_ms
    left = group.initial_delay_left_ms
    extends = timer.kind is TimerKind.JOIN and group.extends_delay
    if extends:
        instant = conditions.hints.of_extension(generation, delay, left, earliest, latest)
    else:
        instant = conditions.hints.of_timer(timer, generation, earliest, latest)
        if instant is not None:
            latest = min(latest, conditions.latest_by_line(instant))
    likely = due.at_ms
    if instant is None and timer.kind is TimerKind.JOIN:  # the first to be answered tells when
        first = hypothesis.pending_requests.joined_first()
        end_ms = due.at_ms if first is None else first.answered_ms
        if extends and earliest <= end_ms < float("inf") and delay:
            likely = extended(end_ms, delay, left, earliest, latest)
        elif not extends:
            likely = max(earliest, min(latest, end_ms))
    return Candidate(
        earliest,
        likely if instant is None else instant,
        latest,
        timer,
        hinted=instant is not None,
        on_time_ms=conditions.on_time_expiry(due) if extends else float("inf"),
    )


def other_protocols(group: Group, candidate: Candidate) -> Iterator[Candidate]:
    """Yield a rejoin once for each protocol that it may turn the group to."""
    if isinstance(candidate.cause, ObservedRequest):
        for protocol in tied_protocols(group, candidate.cause):
            yield candidate._replace(protocol=protocol)


def other_leaders(group: Group, candidate: Candidate) -> Iterator[Candidate]:
    """Yield the SyncGroup of a member that may lead; see `classic.rebalance.settle_leader`."""
    seen = candidate.cause
    if isinstance(seen, ObservedRequest) and seen.api == "SYNC_GROUP" and group.leader is None:
        member_id = seen.request.get("memberId") or ""
        if member_id in group.open_leaders:
            yield candidate._replace(leader=member_id)


def tied_protocols(group: Group, seen: ObservedRequest) -> list[str]:
    """List the protocols that a Stable group may turn to when this request is acted on."""
    body = seen.request
    if seen.api != "JOIN_GROUP" or group.state is not State.STABLE or body.get("memberId"):
        return []
    old_id = group.static_ids.get(body.get("groupInstanceId") or "", "")
    response = seen.response_fields
    stayed = response.get("generationId") == group.generation
    if old_id not in group.members or (stayed and response.get("errorCode") == Error.NONE):
        return []
    offered = tuple((p["name"], p["metadata"]) for p in body["protocols"])
    rejoined = replace(group.members[old_id], protocols=offered)
    after = replace(group, members=group.members.put(rejoined))
    if not after.members.common_protocols:
        return []
    tied = allowed_protocols(after)
    return sorted(tied - {group.protocol}) if group.protocol in tied else []
