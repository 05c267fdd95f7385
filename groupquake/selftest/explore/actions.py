"""What may happen next in a world: every request, timer, outcome of a write, and fault."""

from collections.abc import Iterator

from groupquake.selftest.explore.rules import Rules
from groupquake.selftest.explore.turn import Turn, text_of
from groupquake.selftest.explore.world import IN, JOINED, JOINING, OUT, WAITING, Action, World
from reference_coordinator.classic.state import EMPTY


def actions(world: World, rules: Rules) -> Iterator[Action]:
    """Yield them, but for what Kafka leaves open in each (`Turn.leaders`)."""
    if not world.is_closed:
        yield from _requests(world)
    else:
        yield Action("opens")
    if world.appends:
        yield Action("written")
    if (due := Turn(world, rules).due()) is not None:
        for timer in due[1]:
            yield Action("passes", pick=text_of(timer))
    silent = (place for place, p in enumerate(world.processes) if p.beats and not p.is_silent)
    for place in silent:
        turn = Turn(world, rules)
        turn.silence(place)
        for timer in (turn.due() or (0, ()))[1]:
            yield Action("passes", place, text_of(timer))
    if world.faults_left > 0:
        yield from _faults(world)


def _requests(world: World) -> Iterator[Action]:
    for place, p in enumerate(world.processes):
        if p.phase in (OUT, IN, JOINING):
            yield Action("join", place)
        if p.phase is JOINED:
            yield Action("sync", place)
        if p.beats:
            yield Action("beat", place)
            yield Action("commit", place)
            if p.instance is None:
                yield Action("leave", place)
    yield Action("describe")
    if not world.group.exists:
        yield Action("commit_alone")


def _faults(world: World) -> Iterator[Action]:
    if world.is_closed:
        return
    for place, p in enumerate(world.processes):
        if p.member_id or p.phase in WAITING:
            yield Action("crash", place)
    if world.appends:
        yield Action("fails")
        yield Action("times_out")
    for instance in dict.fromkeys(p.instance for p in world.processes if p.instance):
        yield Action("remove", pick=instance)
    yield Action("delete")
    if world.group.exists and world.group.state is EMPTY:
        yield Action("expire")
    yield Action("move")
    yield Action("kill")
    if world.appends:
        yield Action("kill", pick="stored")
    yield Action("restart")
