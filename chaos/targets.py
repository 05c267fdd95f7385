"""Targets: which members a selector means."""

from collections.abc import Callable

from chaos.errors import TargetError
from scenarios import Experiment, LeaderMemberOf, MemberSpec, Names, Target


def resolve(
    target: Target,
    group: str | None,
    experiment: Experiment,
    leader_of: Callable[[str], str | None],
    *,
    allow_empty: bool,
) -> tuple[MemberSpec, ...]:
    """Return the members that `target` means now, in the experiment's order.

    `group` is whom `all`, `static` and `dynamic` choose from; `leader_of` gives the name of the
    member that leads a group. Raises TargetError if a name is unknown, or, unless `allow_empty`,
    if nobody is selected.
    """
    if isinstance(target, LeaderMemberOf):
        leader = leader_of(target.group)
        found = tuple(m for m in _members(experiment, target.group) if m.name == leader)
    else:
        found = known(target, group, experiment)
    if not found and not allow_empty:
        raise TargetError(f"{_nobody(target, group, experiment)}, or set allow_empty: true")
    return found


def known(target: Target, group: str | None, experiment: Experiment) -> tuple[MemberSpec, ...]:
    """Return the members of a target that the experiment alone decides.

    That is all but a role, of which nothing is known before the fault fires. Raises TargetError if
    a name is unknown.
    """
    match target:
        case LeaderMemberOf():
            return ()
        case Names(names=names):
            members = {member.name: member for member in experiment.members()}
            if unknown := [name for name in names if name not in members]:
                raise TargetError(
                    f"no member is called {', '.join(unknown)}; there are {', '.join(members)}"
                )
            return tuple(members[name] for name in members if name in names)
        case kind:
            here = _members(experiment, group)
            return tuple(member for member in here if kind in ("all", member.kind))


def in_words(target: Target, group: str | None) -> str:
    """Return a target as people read it: `static-3`, `all of G`, `leader-member-of: G`."""
    match target:
        case LeaderMemberOf(group=led):
            return f"leader-member-of: {led}"
        case Names(names=names):
            return ", ".join(names)
        case kind:
            return f"{kind} of {group}"


def _members(experiment: Experiment, group: str | None) -> tuple[MemberSpec, ...]:
    return tuple(member for member in experiment.members() if member.group == group)


def _nobody(target: Target, group: str | None, experiment: Experiment) -> str:
    where = target.group if isinstance(target, LeaderMemberOf) else group
    here = ", ".join(member.name for member in _members(experiment, where)) or "nobody"
    why = " (the brokers' logs show no leader now)" if isinstance(target, LeaderMemberOf) else ""
    words = in_words(target, group)
    return f"target {words} matches no member{why}; group {where} has {here}: choose from these"
