"""Hooks: shell commands of the user's that break a broker of an external cluster, and undo that."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.clusters import commands
from chaos.errors import ChaosError, ClusterError
from scenarios.external import BROKER, Hooks, Verb

LOG = "hooks.log"
"""What hooks printed, in the folder of their broker."""
_SHOWN = 200


def hooks_of(hooks: Mapping[str, Hooks], broker: int) -> Hooks:
    """Return the commands for a broker: its own, or those for any."""
    return hooks.get(str(broker)) or hooks.get("any") or Hooks()


def command_of(hooks: Mapping[str, Hooks], broker: int, verb: Verb) -> str | None:
    """Return the command of a verb for a broker, if there is one."""
    command = hooks_of(hooks, broker).of(verb)
    return None if command is None else command.replace(BROKER, str(broker))


def run(broker: int, verb: str, command: str, timeout_ms: int, log: Path) -> None:
    """Run a command with a shell; what it prints is appended to `log`, of a broker's folder.

    It is done when its shell has ended: what it left in the background goes on. Raises ClusterError
    if it does not end in time, which kills it and what it started, or if its exit code is not 0.
    """
    what = f"broker {broker}: the hook {verb}"
    brokers = log.parent.parent
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab", buffering=0) as printed:
            printed.write(f"{verb}: {command}\n".encode())
    except OSError:  # a broker is healed all the same when the disk is full
        log = Path(os.devnull)
    with log.open("a+b", buffering=0) as printed:
        began = printed.tell()
        process = commands.start(command, brokers, printed, subprocess.STDOUT)
        try:
            code = process.wait(timeout_ms / 1000)
        except subprocess.TimeoutExpired:
            commands.kill(process)
            process.wait()
            printed.write(f"{verb}: killed\n".encode())
            raise ClusterError(
                f"{what} did not end within {timeout_ms / 1000:g} s; raise its timeout, or mend it"
            ) from None
        printed.seek(began)
        lines = printed.read().decode(errors="replace").strip().splitlines()
        printed.write(f"{verb}: exit code {code}\n".encode())
    if code != 0:
        last = lines[-1][:_SHOWN] if lines else "it printed nothing"
        raise ClusterError(f"{what} failed with code {code}: {last}")


def undo_of(hooks: Mapping[str, Hooks], broker: int, verb: Verb, folder: Path) -> Mapping[str, Any]:
    """Return what `run_again` needs; `folder` is the broker's, in the run folder."""
    return {
        "verb": verb,
        "command": command_of(hooks, broker, verb),
        "timeout_ms": hooks_of(hooks, broker).timeout_ms,
        "log": str(folder.resolve() / LOG),
    }


def run_again(broker: int, hook: Mapping[str, Any]) -> str:
    """Carry out an undo of the journal, and return how. Raises ChaosError if it fails."""
    match hook:
        case {
            "verb": str(verb),
            "command": str(command),
            "timeout_ms": int(timeout_ms),
            "log": str(log),
        }:
            pass
        case _:
            raise ChaosError(f"broker {broker}: {dict(hook)} is no hook; the journal was altered")
    try:
        run(broker, verb, command, timeout_ms, Path(log))
    except ClusterError as error:
        raise ChaosError(str(error)) from error
    except OSError as error:
        raise ChaosError(f"broker {broker}: {log}: {error.strerror}; mend that") from error
    return f"broker {broker}: the hook {verb} was run"
