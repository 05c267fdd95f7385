"""Findings that are planted in a synthesized log: each breaks one rule of one group, once.

Some alter what the coordinator printed, as an editor would. Others are done by the coordinator
itself, so that what follows agrees with them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka_protocol.coordinator_lines import JAVA, LineParser
from kafka_protocol.coordinator_lines.template import parts_of
from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.log_line import EVENT
from kafka_protocol.request_log import COMPLETED, PARTS_MS, parsed
from reference_coordinator.classic.effects import Effect
from reference_coordinator.classic.events import Event, JoinReceived
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group, State
from reference_coordinator.classic.step import Step, step
from selftest.broken_rules import MUTANTS
from selftest.synth.group import GroupSimulation, Line
from selftest.timing import NO_OTHER_MS, NO_REQUEST_MS, OWN_LINES_MS


class Planted(NamedTuple):
    """The lines of a group with something wrong; `place` (from 0) is the line that shows it."""

    lines: list[Line]
    place: int


def _begin(template: str) -> str:
    """Return the text of a coordinator line before its first field."""
    return parts_of(JAVA.template(template).text)[0][0].before


def _end(template: str) -> str:
    """Return the text of a coordinator line after its last field."""
    return parts_of(JAVA.template(template).text)[1]


def _error(code: Error) -> str:
    return f'"errorCode":{code:d}'


PREPARING, STABILIZED = _begin("preparing"), _begin("stabilized")
JOINED = (_begin("pending_joins"), _end("static_added"))
EXPIRED = _end("session_expired")
PARSER = LineParser(JAVA)

Alter = Callable[[list[Line]], Planted | None]
"""Returns None where the group has no line to alter."""


@dataclass(frozen=True)
class Kind:
    """A kind of planted finding. `kind` is that of the verdict's finding, or some between bars."""

    kind: str
    what: str
    alter: Alter
    static: bool | None = None
    """Whether it takes a group of static members, or of dynamic ones."""
    coordinator: Step = step

    def prepare(self, simulation: GroupSimulation) -> None:
        """Let the group's coordinator break the rule."""
        if self.coordinator is not step:
            simulation.coordinator = Once(self.coordinator)


@dataclass
class Once:
    """A coordinator that breaks its rule the first time that it can, and keeps it from then on."""

    mutant: Step
    done: bool = False
    __name__ = "once"

    def __call__(
        self, group: Group, event: Event, profile: Profile
    ) -> tuple[Group, tuple[Effect, ...]]:
        """Decide what one event does to a group."""
        right = step(group, event, profile)
        if self.done or not isinstance(event, JoinReceived) or group.state is not State.STABLE:
            return right
        wrong = self.mutant(group, event, profile)
        self.done = wrong[0].state is not right[0].state
        return wrong if self.done else right


def _found(lines: Sequence[Line], *parts: str, last: bool = False) -> int | None:
    """Return the place of the middle line (or the last) with all parts; None if there is none."""
    places = [p for p, line in enumerate(lines) if all(part in line.text for part in parts)]
    if not places:
        return None
    return places[-1 if last else len(places) // 2]


def _replaced(*parts: str, old: str, new: str) -> Alter:
    """Change a text in the middle one of the lines that have all parts."""

    def alter(lines: list[Line]) -> Planted | None:
        place = _found(lines, *parts, old)
        if place is None:
            return None
        line = lines[place]
        changed = line._replace(text=line.text.replace(old, new, 1))
        return Planted([*lines[:place], changed, *lines[place + 1 :]], place)

    return alter


def _counted(regex: str, more: int) -> Alter:
    """Add to the number behind a text in the last line that the group is stable."""

    def alter(lines: list[Line]) -> Planted | None:
        place = _found(lines, STABILIZED, last=True)
        if place is None:
            return None
        line = lines[place]
        add = lambda found: f"{found[1]}{int(found[2]) + more}"
        changed = line._replace(text=re.sub(regex, add, line.text, count=1))
        return Planted([*lines[:place], changed, *lines[place + 1 :]], place)

    return alter


def _second_rebalance(lines: list[Line]) -> Planted | None:
    """Print once more, in the steady state, that a rebalance begins."""
    preparing = _found(lines, PREPARING, last=True)
    stable = _found(lines, '"HEARTBEAT"', _error(NO_ERROR), last=True)
    if preparing is None or stable is None or stable < preparing:
        return None
    added = lines[preparing]._replace(at_ms=lines[stable].at_ms + 0.3)
    return Planted([*lines[: stable + 1], added, *lines[stable + 1 :]], stable + 1)


def _line_left_out(lines: list[Line]) -> Planted | None:
    """Leave out that a member joined; the place is the coordinator's line before it.

    Without the line, only the times of the request tell when the member joined, and the finding is
    at the last line about the group before that. They tell it to some 100 µs: neither how long the
    coordinator took to begin is logged, nor whether it was done before the handler was. So there is
    one place for the line only where the lines around it are outside of that time, and none of
    another request is near. The line before must name the group, as not all lines do.
    """
    printed = [p for p, line in enumerate(lines) if COMPLETED not in line.text]
    for before, place, *after in zip(printed, printed[1:], printed[2:], printed[3:], strict=False):
        if not any(words in lines[place].text for words in JOINED):
            continue
        now, before_ms, next_ms = (lines[p].at_ms for p in (place, before, after[0]))
        near = any(OWN_LINES_MS < lines[p].at_ms - now < NO_REQUEST_MS for p in after)
        if near or now - before_ms < NO_REQUEST_MS or "group" not in _fields(lines[before]):
            continue
        handled = _handled(_fields(lines[place])["member"], lines[place:])
        if handled and before_ms < handled[0] and handled[1] < next_ms:
            return Planted(lines[:place] + lines[place + 1 :], before)
    return None


def _fields(line: Line) -> Mapping[str, str]:
    """Return the fields of a coordinator's line."""
    _, body, logger = _event(line)
    return PARSER.parsed(line.broker, logger, body).fields


def _event(line: Line) -> tuple[str, str, str]:
    """Return level, body and logger of a line."""
    match = re.fullmatch(EVENT, line.text)
    assert match is not None
    return match[1], match[2], match[3]


def _handled(member: str, lines: Iterable[Line]) -> tuple[float, float] | None:
    """Return when the handler of the JoinGroup that made a member began and ended, by its line.

    Returns None if it has none, or was refused: then another process replaced the member while it
    waited, and the line about that may be taken for its own.
    """
    for line in lines:
        if '"JOIN_GROUP"' in line.text and member in line.text:
            content = parsed(_event(line)[1])
            response = content["response"]
            if (response["memberId"], response["errorCode"]) == (member, NO_ERROR):
                local_ms, *rest_ms = (content[name] for name in PARTS_MS[1:])
                ended_ms = line.at_ms - sum(rest_ms)
                return ended_ms - local_ms, ended_ms
    return None


def _shown(*parts: str) -> Alter:
    """Leave all lines: the coordinator itself broke the rule, in the first line with all parts.

    No other rebalance is near, which could be taken for that one.
    """

    def alter(lines: list[Line]) -> Planted | None:
        places = [p for p, line in enumerate(lines) if all(part in line.text for part in parts)]
        if not places:
            return None
        at_ms = lines[places[0]].at_ms
        near = (line for line in lines if PREPARING in line.text or EXPIRED in line.text)
        if sum(abs(line.at_ms - at_ms) < NO_OTHER_MS for line in near) > (PREPARING in parts):
            return None
        return Planted(lines, places[0])

    return alter


KINDS: tuple[Kind, ...] = (
    Kind(
        "wrong_answer",
        "a heartbeat of a stable member is answered UNKNOWN_MEMBER_ID",
        _replaced('"HEARTBEAT"', old=_error(NO_ERROR), new=_error(Error.UNKNOWN_MEMBER_ID)),
    ),
    Kind(
        "wrong_members",
        "one member more is counted when the group is stable",
        _counted(r"( with )(\d+)", 1),
    ),
    Kind("missing_line", "the line that a member joined is missing", _line_left_out),
    Kind("wrong_generation", "a generation is four too high", _counted(r"( generation )(\d+)", 4)),
    Kind("unexpected_rebalance", "a rebalance is printed twice", _second_rebalance),
    Kind(
        "unexpected_rebalance|wrong_reason",  # the leader that has to rejoin would start one, too
        "a static member's return starts a rebalance",
        _shown(PREPARING, "(reason: Group's selectedProtocol will change"),
        static=True,
        coordinator=MUTANTS["rebalances_on_static_replacement"],
    ),
)
"""In the order in which they are planted."""


def differences(verdict: Mapping[str, Any], planted: Iterable[Mapping[str, Any]]) -> list[str]:
    """List what a verdict misses of what was planted, and what it finds in other groups.

    A planted finding is found if it is a root of its kind at its line.
    """
    left = {entry["group"]: entry for entry in planted}
    missed, others = dict(left), []
    for finding in verdict["findings"]:
        entry, place = left.get(finding["group"]), finding["log"] or {}
        if entry is None:
            others.append(f"found elsewhere: {finding}")
        elif (
            finding["root"]
            and finding["kind"] in entry["kind"].split("|")
            and (place.get("broker"), place.get("line")) == (entry["broker"], entry["line"])
        ):
            missed.pop(finding["group"], None)
    return [f"missed: {entry}" for entry in missed.values()] + others
