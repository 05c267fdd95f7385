"""What may happen next in a scene: every request, timer, outcome of a write, and fault."""

from collections.abc import Iterator

from reference_coordinator.classic.state import EMPTY
from selftest.explore.rules import Rules
from selftest.explore.scene import IN, JOINED, JOINING, OUT, WAITING, Action, Scene
from selftest.explore.turn import Turn, text_of


def actions(scene: Scene, rules: Rules) -> Iterator[Action]:
    """Yield them, but for what Kafka leaves open in each (`Turn.leaders`)."""
    if not scene.is_closed:
        yield from _requests(scene)
    else:
        yield Action("opens")
    if scene.appends:
        yield Action("written")
    if (due := Turn(scene, rules).due()) is not None:
        for timer in due[1]:
            yield Action("passes", pick=text_of(timer))
    silent = (place for place, p in enumerate(scene.processes) if p.is_beating)
    for place in silent:
        turn = Turn(scene, rules)
        turn.silence(place)
        for timer in (turn.due() or (0, ()))[1]:
            yield Action("passes", place, text_of(timer))
    if scene.faults_left > 0:
        yield from _faults(scene)


def _requests(scene: Scene) -> Iterator[Action]:
    for place, p in enumerate(scene.processes):
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
    if not scene.group.exists:
        yield Action("commit_alone")


def _faults(scene: Scene) -> Iterator[Action]:
    if scene.is_closed:
        return
    for place, p in enumerate(scene.processes):
        if p.member_id or p.phase in WAITING:
            yield Action("crash", place)
    if scene.appends:
        yield Action("fails")
        yield Action("times_out")
    for instance in dict.fromkeys(p.instance for p in scene.processes if p.instance):
        yield Action("remove", pick=instance)
    yield Action("delete")
    if scene.group.exists and scene.group.state is EMPTY:
        yield Action("expire")
    yield Action("move")
    yield Action("kill")
    if scene.appends:
        yield Action("kill", pick="stored")
    yield Action("restart")
