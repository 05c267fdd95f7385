"""A signal that the kernel hands to some other thread of a process than the main one."""

import ctypes
import signal
from pathlib import Path


def signal_other_thread(pid: int, number: signal.Signals) -> None:
    """Send it to a thread that takes signals, and to the main thread only if there is no other."""
    takers = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir() if takes(task, number)]
    other = max((thread for thread in takers if thread != pid), default=pid)
    assert ctypes.CDLL(None).tgkill(pid, other, number) == 0


def takes(task: Path, number: signal.Signals) -> bool:
    """Say whether a thread does not block a signal, as librdkafka's threads do."""
    lines = (task / "status").read_text().splitlines()
    blocked = next(line.split()[1] for line in lines if line.startswith("SigBlk:"))
    return not int(blocked, 16) >> (number - 1) & 1
