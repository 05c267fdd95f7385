"""Scenes: several steps in a row that lead where single ones hardly ever do.

Each is for a rule that shows in few states alone. Like any action, a scene plays with what there
is, or returns False; what the group makes of it is for the oracle to say.
"""

from collections.abc import Sequence
from typing import Any

from groupquake.selftest.fuzz.player import MAX_SIZE, Player
from groupquake.selftest.fuzz.process import Phase, Process
from groupquake.selftest.fuzz.script import Ref, resolve
from loadtest.wire_scripts.members import subscription

MOST = 6
"""So many processes live at most; `group.max.size` of the fuzzed broker is lower."""
SHORT_MS, LONG_MS = 350, 2_500
"""A session that ends while others wait, and timeouts that last longer."""
OVERDUE_MS = 650
"""So long after a timer's time it has run out, as the oracle sees it."""


def rally(player: Player) -> bool:
    """Everybody joins, and nobody asks for an assignment yet."""
    leaders = [p for p in player.having(Phase.IN) if p.told]
    if leaders:
        player.join(leaders[0], patience_ms=4)
    for _ in range(3):
        for process in player.having(Phase.IN):
            player.heartbeat(process)
        for process in player.having(Phase.OUT):
            player.join(process, patience_ms=4)
        player.stage.pump(player.stage.now_ms + 250, lambda: not any(map(_waits, player.living)))
    return bool(player.having(Phase.JOINED))


def settle(player: Player) -> list[Process]:
    """Everybody joins and is given its share, or so the group lets them; return who is in."""
    if not player.having(Phase.IN):
        rally(player)
    for process in player.having(Phase.JOINED):
        player.sync(process, too_large=False)
    player.stage.pump(player.stage.now_ms + 120, lambda: not any(map(_waits, player.living)))
    return player.having(Phase.IN)


def enter(player: Player, process: Process) -> None:
    """A process joins, with the id that it may be given first, and waits for others."""
    player.join(process, patience_ms=20)
    if process.member_id and not process.joined and not process.busy:
        player.join(process, patience_ms=0)


def linger(player: Player) -> bool:
    """A member that has joined shows that it lives before it asks for its assignment."""
    joined = player.having(Phase.JOINED)
    if joined:
        player.heartbeat(player.rng.choice(joined))
    return bool(joined)


def return_before_sync(player: Player) -> bool:
    """A static follower is back before it asked for its assignment.

    Its old id may be waited for, and perhaps another that never asks. The others keep the group
    alive until the timer for missing SyncGroups has run out.
    """
    if not rally(player):
        return False
    late = [p for p in player.having(Phase.JOINED) if p.instance_id and not p.told]
    if not late:
        return False
    back = player.rng.choice(late)
    others = [p for p in player.having(Phase.JOINED) if p is not back]
    patient = [p for p in others if p.session_ms > LONG_MS and not p.told]
    silent = patient[:1] if player.rng.random() < 0.5 else []
    for process in others:
        if process not in silent:
            player.sync(process)
    player.die(back)
    back.restart()
    player.join(back)
    if back.phase is Phase.JOINED:
        player.sync(back)
    longest_ms = max(p.rebalance_ms for p in player.processes)
    player.wait(back.joined_ms + longest_ms + OVERDUE_MS, player.living)
    _beat(player)
    return True


def return_without_the_protocol(player: Player) -> bool:
    """A static follower is back before it asked for its assignment, and knows another protocol.

    The leader hands work out all the same; somebody leaves, so that whoever waits is answered.
    """
    if not rally(player):
        return False
    joined = player.having(Phase.JOINED)
    followers = [p for p in joined if p.instance_id and not p.told and p.protocol]
    leaders = [p for p in joined if p.told]
    if not followers or not leaders:
        return False
    back = player.rng.choice(followers)
    selected = resolve(back.protocol, player.stage.answers)
    player.die(back)
    back.restart()
    ((_, data), *_) = back.protocols
    back.protocols = (("rr" if selected == "range" else "range", data),)
    player.join(back)
    player.sync(leaders[0], too_large=False)
    player.leave(back, [("", back.instance_id)], own=False, connection=f"{back.client_id}.x")
    player.stage.pump(player.stage.now_ms + 60)
    return True


def return_too_large(player: Player) -> bool:
    """A static member returns with more metadata than a record takes, and is silent from then on.

    A full group would not have it back. What the others are told of it shows what the group
    remembers.
    """
    if not player.too_large:
        return False
    members = settle(player)
    if len(members) == MAX_SIZE:
        _remove(player, [(members[0].member_id, members[0].instance_id)], "out")
        members[0].gone = True
        rally(player)
        members = settle(player)
    able = [p for p in members if p.instance_id and p.session_ms >= 1_500]
    if not able or len(members) < 2:
        return False
    process = player.rng.choice(able)
    player.die(process)
    process.restart()
    bulk = subscription(b"a" * player.too_large)
    process.protocols = tuple((name, bulk) for name, _ in process.protocols)
    player.join(process, patience_ms=120)
    process.gone = True
    player.describe(player.rng.choice(player.processes))
    rally(player)
    player.stage.pump(player.stage.now_ms + max(p.rebalance_ms for p in player.processes))
    return True


def sync_too_large(player: Player) -> bool:
    """The leader hands out more than a record takes, while others speak."""
    leaders = [p for p in player.having(Phase.JOINED) if p.told]
    if not player.too_large or not leaders:
        return False
    player.sync(leaders[0], patience_ms=0, too_large=True)
    for process in player.free:
        if process is not leaders[0]:
            player.heartbeat(process, patience_ms=0)
    return True


def evict(player: Player) -> None:
    """Everybody known is removed, at once if the version allows it."""
    stale = [(ref, None) for process in player.processes for ref in process.stale]
    known = [process for process in player.processes if process.member_id]
    who = [*((process.member_id, process.instance_id) for process in known), *stale]
    for process in known:
        process.forget()
    if who:
        _remove(player, who, "evict")
        player.stage.pump(player.stage.now_ms + 30)


def start_over(player: Player) -> bool:
    """Everybody goes, and others come one after the other: each makes the initial delay longer.

    Somebody looks when the first has come, and when it would be over for certain if they did not
    make it longer.
    """
    evict(player)
    for process in player.living:
        process.gone = True
    observer, began_ms = player.newcomer(), 0.0
    for _ in range(4):
        enter(player, player.newcomer(rebalance_ms=LONG_MS))
        if not began_ms:
            player.describe(observer, patience_ms=LONG_MS)
            began_ms = player.stage.now_ms
        player.stage.pump(player.stage.now_ms + 130)
    player.stage.pump(began_ms + 730)
    player.describe(observer)
    player.stage.pump(player.stage.now_ms + 600, lambda: not any(map(_waits, player.living)))
    return True


def expire_in_delay(player: Player) -> bool:
    """A pending member's session ends during the initial delay, which others make long.

    That it ended shows when it asks to join; that the delay goes on, when others come and go for
    longer than a timer may be late. Some coordinators make the delay long only before the first
    generation.
    """
    evict(player)
    if len(player.living) > MOST - 3:
        return False
    pending, waiting = player.newcomer(dynamic=True, session_ms=SHORT_MS), list[Process]()
    player.join(pending, own=True, patience_ms=10)
    for _ in range(9):
        waiting.append(player.newcomer(f"i{len(player.processes) + 1}", rebalance_ms=LONG_MS))
        player.join(waiting[-1], patience_ms=0)
        player.stage.pump(player.stage.now_ms + 140)
        if len(waiting) == MAX_SIZE - 1:
            if pending.member_id and not pending.joined:
                player.join(pending, patience_ms=30)
                player.describe(pending)
            old = waiting.pop(0)
            old.gone = True
            _remove(player, [("", old.instance_id)], "out")
    player.stage.pump(player.stage.now_ms + 600, lambda: not any(map(_waits, player.living)))
    return True


def demolish(player: Player) -> bool:
    """Everybody goes, and the group is deleted while others speak of it."""
    whom = [(p, p.member_id, p.generation) for p in player.free if p.member_id][:3]
    evict(player)
    if not player.free or not whom:
        return False
    player.delete(player.rng.choice(player.free), connection="delete")
    for process, member_id, generation in whom:
        if player.rng.random() < 0.3:
            player.join(process, patience_ms=0)
        else:
            known = {"memberId": member_id, "generationId": generation}
            player.heartbeat(process, own=False, patience_ms=0, **known)
    player.stage.pump(player.stage.now_ms + 30)
    return True


def return_while_new(player: Player) -> bool:
    """A new static member returns while its first join phase waits for others, longer than it."""
    if len(player.living) >= MOST or not any(p.session_ms >= 1_000 for p in settle(player)):
        return False
    name = f"i{len(player.processes) + 1}"
    new = player.newcomer(name, session_ms=SHORT_MS, rebalance_ms=LONG_MS)
    player.join(new, patience_ms=20)
    if new.busy:
        player.die(new)
        new.restart()
        player.join(new, patience_ms=SHORT_MS + OVERDUE_MS)
    return True


def leave_while_pending(player: Player) -> bool:
    """A member that was only given an id leaves, whatever instance it says it is.

    Before, it may ask to join as one with an instance, which is none of the coordinator's cases.
    """
    if len(player.living) >= MOST:
        return False
    pending = player.newcomer(dynamic=True)
    pending.gone = True
    player.join(pending, patience_ms=120)
    if not pending.member_id or pending.joined:
        return True
    instances = [p.instance_id for p in player.processes if p.instance_id]
    instance = player.rng.choice((None, "ghost", *instances[:1]))
    if instance is not None:
        player.join(
            pending, own=False, connection=f"{pending.client_id}.x", groupInstanceId="ghost"
        )
    player.leave(pending, [(pending.member_id, instance)], own=False)
    _beat(player)
    return True


def sync_again(player: Player) -> bool:
    """A member asks once more for its assignment when its session is nearly over, and no more."""
    brief = [p for p in player.having(Phase.IN) if 1_000 <= p.session_ms <= 1_500]
    if not brief or len(player.having(Phase.IN)) < 2:
        return False
    silent = player.rng.choice(brief)
    player.heartbeat(silent, patience_ms=60)
    began_ms, session_ms = player.stage.now_ms, silent.session_ms
    beating = [p for p in player.having(Phase.IN) if p is not silent]
    player.wait(began_ms + 0.7 * session_ms, beating)
    player.sync(silent, own=False)
    for more_ms in (200, 600):  # it has ended, if the SyncGroup did not count; it has for certain
        player.wait(began_ms + session_ms + more_ms, beating)
        _beat(player, without=silent)
    return True


def beat_at_the_end(player: Player) -> bool:
    """A member shows that it lives at the moment when its session ends."""
    brief = [p for p in player.having(Phase.IN) if p.session_ms <= 1_500]
    if not brief:
        return False
    process = player.rng.choice(brief)
    player.heartbeat(process, patience_ms=60)
    others = [p for p in player.having(Phase.IN) if p is not process]
    player.wait(process.alive_ms + process.session_ms - 3, others)
    for _ in range(12):
        player.heartbeat(process, own=False, patience_ms=1)
    _beat(player)
    return True


def look_at_birth(player: Player) -> bool:
    """Somebody looks at a group at the moment that it is created.

    That it is there already shows in what a commit is told: its member is not known, no more.
    """
    observer, first = player.newcomer(), player.newcomer()
    player.describe(observer)
    player.join(first, patience_ms=0)
    commit_to_nobody(player, patience_ms=60)
    player.describe(observer)
    return True


def rise_again(player: Player) -> bool:
    """Everybody goes, and the group is deleted and created anew."""
    if not player.free:
        return False
    evict(player)
    player.delete(player.rng.choice(player.free))
    for process in player.living:
        process.gone = True
    return look_at_birth(player)


def commit_to_nobody(player: Player, patience_ms: int | None = None) -> bool:
    """A commit with a generation, to a group that nobody has ever joined."""
    numbered: dict[str, Any] = {"generationId": 1, "generationIdOrMemberEpoch": 1}
    stranger = player.newcomer()
    player.commit(stranger, own=False, patience_ms=patience_ms, memberId="nobody", **numbered)
    return True


def commit_just_too_much(player: Player) -> bool:
    """Somebody commits a little more than the log takes, and others speak at the same time.

    It is so little that Java's coordinator finds out only when it writes what it has gathered.
    """
    members = settle(player)
    if not player.too_large or len(members) < 2:
        return False
    player.commit(members[0], own=False, patience_ms=0, just_too_large=True)
    for process in 3 * members[1:]:
        player.heartbeat(process, own=False, patience_ms=2)
    player.stage.pump(player.stage.now_ms + 60)
    return True


def _remove(player: Player, who: Sequence[tuple[Ref | str, str | None]], connection: str) -> None:
    """Remove members on behalf of whoever speaks the newest version."""
    speaker = max(player.processes, key=lambda p: p.versions["LEAVE_GROUP"])
    player.leave(speaker, who, own=False, connection=f"{speaker.client_id}.{connection}")


def _beat(player: Player, without: Process | None = None) -> None:
    for process in player.having(Phase.IN):
        if process is not without:
            player.heartbeat(process)


def _waits(process: Process) -> bool:
    return bool(process.waiting)
