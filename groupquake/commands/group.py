"""`groupquake group`: an operator's actions on a group of any cluster."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from chaos.removal import GroupError, Removal, error_name, remove_members, static_members
from chaos.timing import REMOVAL_S
from groupquake.access import require_answer
from groupquake.commands.options import duration, json_option, servers
from groupquake.console import Console
from groupquake.exits import Exit
from kafka_protocol.errors import Error
from scenarios.client_properties import KEYS, read_checked
from scenarios.durations import format_ms

_ADVICE = {
    14: "the coordinator is loading the group; try again",
    15: "no broker coordinates the group now; try again",
    16: "the group is moving to another broker; try again",
    24: "the group id is invalid",
    25: "not a member of the group",
    30: "not authorized; grant the user the ACL operation READ on the group",
    35: "the brokers cannot remove members by instance id; they need Kafka 2.4 or later",
    69: "there is no classic group with that name",
}


@click.group()
def group() -> None:
    """Act on a consumer group of any cluster."""


def _instance_ids(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if not all(name.strip() == name != "" for name in names):
        raise click.BadParameter(f"'{text}' is not a list of instance ids; write a,b,c")
    return names


@group.command(
    "remove-members",
    epilog=f"Exit codes: 0 all removed; {Exit.FAIL:d} some not removed, the output says why; "
    f"{Exit.USAGE:d} bad usage or file; {Exit.UNAVAILABLE:d} no response from the cluster; "
    f"{Exit.NOT_AUTHORIZED:d} the user is not let in.",
)
@click.argument("group_id", metavar="GROUP")
@click.option(
    "--instances", metavar="A,B,…", type=_instance_ids,
    help="The members to remove, by group.instance.id.",
)  # fmt: skip
@click.option("--all", "everyone", is_flag=True, help="Remove every static member of the group.")
@click.option("--bootstrap", required=True, metavar="HOST:PORT,…", type=servers, help="Servers.")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"File of lines key=value for TLS and SASL: {', '.join(KEYS)}.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_ms", metavar="TIME", default=format_ms(round(REMOVAL_S * 1000)),
    show_default=True, type=duration,
    help="How long to wait for the cluster, and for each response.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print who would be removed; remove nobody.")
@json_option
def remove_members_command(
    group_id: str, instances: tuple[str, ...] | None, bootstrap: str, config: Path | None,
    timeout_ms: int, *, everyone: bool, dry_run: bool,
) -> Exit:  # fmt: skip
    """Remove static members from a group at once, without waiting for their session timeout.

    For scale-down and host replacement: one LeaveGroup request by instance ids (KIP-345). Members
    that still run get UNKNOWN_MEMBER_ID and join again; stop them first.
    """
    if everyone == bool(instances):
        raise click.UsageError("give either --instances A,B,… or --all")
    properties, timeout_s = read_checked(config), timeout_ms / 1000
    require_answer(bootstrap, properties, timeout_s)
    present = partial(static_members, bootstrap, group_id, properties, timeout_s=timeout_s)
    remove = partial(remove_members, bootstrap, group_id, config=properties, timeout_s=timeout_s)
    try:
        removal = _removal(instances or (), present, None if dry_run else remove)
    except GroupError as error:
        removal = Removal(error.code, ())
        Console.error(f"group {group_id}: {_described(error.code)}")
    lines = [] if removal.error else _lines(group_id, removal, dry_run=dry_run)
    Console().answer(_as_dict(group_id, removal, dry_run=dry_run), *lines)
    codes = [removal.error, *(code for _, code in removal.members)]
    return Exit.FAIL if any(codes) else Exit.PASS


def _removal(
    instances: Sequence[str],
    present: Callable[[], Sequence[str]],
    remove: Callable[[Sequence[str]], Removal] | None,
) -> Removal:
    """Remove the given members, or all static ones; without `remove`, only look them up.

    Raises GroupError for an error of the whole group.
    """
    if remove is None:
        there = present()
        code_of = lambda one: Error.NONE if one in there else Error.UNKNOWN_MEMBER_ID
        return Removal(Error.NONE, tuple((one, code_of(one)) for one in instances or there))
    wanted = instances or present()
    if not wanted:
        return Removal(Error.NONE, ())
    removal = remove(wanted)
    if removal.error != Error.NONE:
        raise GroupError(removal.error, error_name(removal.error))
    if all(code == Error.UNKNOWN_MEMBER_ID for _, code in removal.members):
        present()  # raises if there is no group: brokers respond the same
    return removal


def _described(code: int) -> str:
    name = error_name(code)
    return f"{_ADVICE[code]} ({name})" if code in _ADVICE else name


def _lines(group_id: str, removal: Removal, *, dry_run: bool) -> list[str]:
    done = "would be removed" if dry_run else "removed"
    lines = [f"member {one}: {_described(code) if code else done}" for one, code in removal.members]
    removed = sum(code == Error.NONE for _, code in removal.members)
    total = f"{removed} of {len(removal.members)} {done}" if lines else "it has no static members"
    return [*lines, f"group {group_id}: {total}"]


def _as_dict(group_id: str, removal: Removal, *, dry_run: bool) -> dict[str, Any]:
    name = lambda code: error_name(code) if code else None
    return {
        "group": group_id,
        "dry_run": dry_run,
        "error": name(removal.error),
        "members": [
            {"instance_id": one, "removed": not (code or dry_run), "error": name(code)}
            for one, code in removal.members
        ],
    }
