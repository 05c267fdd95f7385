"""What may happen next in a sequence, and how likely: a table.

Most of it is what clients do, or groups would never get far; the rest is what no client should do.
Arguments depend on what the answers told, so that most sequences reach the interesting states.
"""

from collections.abc import Callable, Mapping
from typing import Any

from groupquake.selftest.fuzz import scenes
from groupquake.selftest.fuzz.player import Player
from groupquake.selftest.fuzz.process import Phase, Process
from groupquake.selftest.fuzz.scenes import MOST
from groupquake.selftest.fuzz.script import Ref, Shares

AROUND_MS = (-150, -60, 60, 200, 700)
"""Where requests are placed around a timer; it may run out some time late."""

Action = Callable[[Player], bool]
"""Does something and returns True, or returns False if there is nothing to do it with."""


def behave(player: Player) -> bool:
    """Somebody does what a client would do; whoever is not in the group is likelier."""
    lagging = [p for p in player.free if p.phase is not Phase.IN]
    if lagging and player.rng.random() < 0.8:
        player.behave(player.rng.choice(lagging))
        return True
    return _with(player, player.free, player.behave)


def gather(player: Player) -> bool:
    """Everybody does what a client would do, until all are in or somebody is missing."""
    for _ in range(4):
        lagging = [p for p in player.free if p.phase is not Phase.IN]
        for process in sorted(lagging, key=lambda p: p.phase is Phase.JOINED and p.told > 0):
            if not process.busy:
                player.behave(process)
        player.stage.pump(
            player.stage.now_ms + 250, lambda: all(not p.waiting for p in player.living)
        )
        for process in player.having(Phase.IN):
            player.heartbeat(process)
    return True


def newcomer(player: Player) -> bool:
    """Another process starts."""
    if len(player.living) >= MOST:
        return False
    player.join(player.newcomer())
    return True


def restart(player: Player) -> bool:
    """A process dies and is back at once, with its identity and no member id."""

    def again(process: Process) -> None:
        player.die(process)
        process.restart()
        if player.rng.random() < 0.2:
            process.protocols = player.protocols()
        player.join(process)

    return _with(player, player.living, again)


def crash(player: Player) -> bool:
    """A process dies for good."""

    def die(process: Process) -> None:
        player.die(process)
        process.gone = True

    return len(player.living) > 1 and _with(player, player.living, die)


def duplicate(player: Player) -> bool:
    """A second process starts with an instance id in use."""
    if len(player.living) >= MOST:
        return False
    static = [p for p in player.living if p.instance_id]
    return _with(player, static, lambda p: player.join(player.newcomer(p.instance_id)))


def twins(player: Player) -> bool:
    """A static process is started twice at the same moment, after it died."""

    def both(process: Process) -> None:
        player.die(process)
        process.restart()
        twin = player.newcomer(process.instance_id)
        player.join(process, patience_ms=0)
        player.join(twin)

    return len(player.living) < MOST and _with(
        player, [p for p in player.living if p.instance_id], both
    )


def change(player: Player) -> bool:
    """A member joins again with its id, other protocols or other timeouts, or just so."""

    def other(process: Process) -> None:
        if player.rng.random() < 0.6:
            process.protocols = player.protocols()
        if player.rng.random() < 0.3:
            process.session_ms = player.rng.choice((600, 1000, 2000))
            process.rebalance_ms = player.rng.choice((500, 900, 1500))
        player.join(process)

    return _with(player, [p for p in player.free if p.joined], other)


def again(player: Player) -> bool:
    """Whoever waits in a request sends it once more, on another connection or the same one."""

    def twice(process: Process) -> None:
        beside = f"{process.client_id}.{process.incarnation}b"
        connection = player.rng.choice((beside, beside, process.connection))
        if player.rng.random() < 0.6:
            player.join(process, connection=connection, own=False)
        else:
            player.sync(process, own=False)

    return _with(player, [p for p in player.living if p.busy], twice)


def leave(player: Player) -> bool:
    """A member leaves as clients do."""
    members = [p for p in player.living if p.member_id]

    def go(process: Process) -> None:
        player.leave(process, [(process.member_id, process.instance_id)], own=True)

    return _with(player, members, go)


def remove(player: Player) -> bool:
    """Somebody removes several at once: members, pending, fenced and unknown ones, one twice."""

    def batch(process: Process) -> None:
        who = []
        for _ in range(player.rng.randint(1, 4)):
            whom = player.rng.choice(player.processes)
            who.append((member_id(player, whom), instance_id(player, whom)))
        player.leave(process, who, own=False)

    return _with(player, player.living, batch)


def stray(player: Player) -> bool:
    """A request with ids and a generation that may be of somebody else, old, or of nobody."""

    def speak(process: Process) -> None:
        whom = player.rng.choice(player.processes)
        who = {
            "memberId": member_id(player, whom),
            "groupInstanceId": instance_id(player, whom),
            **generation(player, whom),
        }
        say = player.rng.choice((player.heartbeat, player.sync, player.commit))
        say(process, own=False, **who)

    return _with(player, player.free, speak)


def intrude(player: Player) -> bool:
    """A JoinGroup with ids that do not belong together, or that nobody knows."""

    def join(process: Process) -> None:
        whom = player.rng.choice(player.processes)
        who: dict[str, Any] = {
            "memberId": member_id(player, whom),
            "groupInstanceId": instance_id(player, whom),
        }
        player.join(process, connection=f"{process.client_id}.x", own=False, **who)

    return _with(player, player.living, join)


def misfit(player: Player) -> bool:
    """A JoinGroup or SyncGroup that the group cannot go with: timeouts, protocols, their type."""
    odd: tuple[Mapping[str, Any], ...] = (
        {"sessionTimeoutMs": 100},
        {"sessionTimeoutMs": 10_000_000},
        {"protocols": []},
        {"protocolType": ""},
        {"protocolType": "connect"},
        {"protocols": [{"name": "unheard-of", "metadata": ""}]},
    )

    def join(process: Process) -> None:
        if process.phase is Phase.JOINED:
            wrong: Mapping[str, Any] = player.rng.choice(
                ({"protocolName": "other"}, {"protocolType": "connect"})
            )
            player.sync(process, own=False, **wrong)
        else:
            player.join(process, own=False, **player.rng.choice(odd))

    return _with(player, player.free, join)


def hand_out_less(player: Player) -> bool:
    """A leader leaves somebody out of the assignment."""
    leaders = [p for p in player.having(Phase.JOINED) if p.told]
    return _with(player, leaders, lambda p: player.sync(p, assignments=Shares(p.told, spare=1)))


def simple_commit(player: Player) -> bool:
    """A commit without generation, as a consumer without a group sends it; ids or not."""

    def commit(process: Process) -> None:
        ids: dict[str, Any] = {"memberId": "", "groupInstanceId": None}
        if player.rng.random() < 0.4:
            ids = {"memberId": member_id(player, process)}
        none: dict[str, Any] = {"generationId": -1, "generationIdOrMemberEpoch": -1}
        player.commit(process, own=False, **none, **ids)

    return _with(player, player.free, commit)


def describe(player: Player) -> bool:
    """Somebody looks at the group."""
    return _with(player, player.free, player.describe)


def delete(player: Player) -> bool:
    """Somebody wants the group deleted."""
    return _with(player, player.free, player.delete)


def pause(player: Player) -> bool:
    """A little time passes."""
    player.stage.pump(player.stage.now_ms + player.rng.choice((10, 30, 80)))
    return True


def wait(player: Player) -> bool:
    """Time passes until about when a timer runs out; some or all send heartbeats meanwhile."""
    now_ms = player.stage.now_ms
    due = [ms + player.rng.choice(AROUND_MS) for ms in timers(player)]
    soon = [ms for ms in due if now_ms < ms < now_ms + 2_500]
    if not soon:
        return False
    beating = [p for p in player.living if player.rng.random() < 0.7]
    player.wait(player.rng.choice(soon), beating)
    return True


def timers(player: Player) -> list[float]:
    """List when timers of the coordinator run out, as far as a client can know."""
    living = player.living
    longest = max((p.rebalance_ms for p in player.processes), default=0)
    sessions = [p.alive_ms + p.session_ms for p in player.processes if p.joined]
    pending = [p.pending_ms + p.session_ms for p in living if p.pending_ms and not p.joined]
    joins = [player.rebalance_ms + more for more in (200, 400, longest)]
    syncs = [p.joined_ms + longest for p in player.processes if p.joined_ms]
    return sessions + pending + joins + syncs


TABLE: tuple[tuple[int, Action], ...] = (
    (40, behave),
    (10, gather),
    (9, newcomer),
    (8, restart),
    (2, crash),
    (5, duplicate),
    (2, twins),
    (5, change),
    (3, again),
    (3, leave),
    (4, remove),
    (7, stray),
    (4, intrude),
    (3, misfit),
    (1, hand_out_less),
    (2, simple_commit),
    (3, describe),
    (1, delete),
    (6, pause),
    (9, wait),
    (2, scenes.linger),
    (1, scenes.rally),
    (1, scenes.return_before_sync),
    (1, scenes.return_without_the_protocol),
    (9, scenes.return_too_large),
    (4, scenes.sync_too_large),
    (4, scenes.commit_just_too_much),
    (2, scenes.start_over),
    (5, scenes.expire_in_delay),
    (4, scenes.demolish),
    (1, scenes.rise_again),
    (2, scenes.return_while_new),
    (1, scenes.leave_while_pending),
    (2, scenes.sync_again),
    (5, scenes.beat_at_the_end),
)

STRANGERS = (
    *(stray, simple_commit, describe, delete, remove),
    *(scenes.commit_to_nobody, scenes.look_at_birth, scenes.expire_in_delay),
)
"""What may be asked of a group that is not there yet."""


def member_id(player: Player, process: Process) -> Ref | str:
    """Draw a member id: a process's own, one of before, another's, nobody's, or none."""
    others = [p.member_id for p in player.processes if p is not process]
    stale = [ref for p in player.processes for ref in p.stale]
    kinds: list[list[Ref | str]] = [
        [process.member_id],
        [process.member_id],
        [*others],
        [*stale],
        ["nobody"],
        [""],
    ]
    return player.rng.choice(player.rng.choice([kind for kind in kinds if kind]))


def instance_id(player: Player, process: Process) -> str | None:
    """Draw an instance id: a process's own as a rule, else another's, nobody's, or none."""
    if player.dynamic_alone:
        return None
    others = [p.instance_id for p in player.processes]
    return player.rng.choice([process.instance_id] * 4 + [player.rng.choice(others), "ghost", None])


def generation(player: Player, process: Process) -> dict[str, Any]:
    """Draw a generation: a process's own as a rule, else one off, or none."""
    plus = player.rng.choice((0, 0, 0, 1, -1))
    value: Any = process.generation
    if isinstance(value, Ref):
        value = Ref(value.step, value.key, plus)
    elif plus > 0:
        value = 1
    return {"generationId": value, "generationIdOrMemberEpoch": value}


def _with(player: Player, candidates: list[Process], do: Callable[[Process], object]) -> bool:
    """Do something with one of the candidates, if there are any."""
    if candidates:
        do(player.rng.choice(candidates))
    return bool(candidates)
