"""The daemon of Spark's Python workers on this machine: each worker is a fork of it.

PySpark's own daemon lets every worker import its code after the fork. This one imports what starts
no thread beforehand, once. (`pyarrow` starts threads, which a fork does not have.)
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

BEFOREHAND = ("pyspark.worker", "reports.judgement.log.broker_log", "reports.judgement.group")


def installed(paths: Sequence[str]) -> list[str]:
    """Leave the archives of the installed PySpark out of a search path.

    Spark puts them first. Python compiles a module of an archive each time that it imports it, and
    every task reads the archive's directory again.
    """
    unpacked = [path for path in paths if not path.endswith(".zip")]
    found = PathFinder.find_spec("pyspark", unpacked)
    if found is None or found.origin is None:
        return [*paths]
    archives = Path(found.origin).parent / "python" / "lib"
    return [path for path in paths if Path(path).parent != archives]


def run() -> None:
    """Import what workers need, and fork them until Spark ends."""
    sys.path[:] = installed(sys.path)
    for name in BEFOREHAND:
        import_module(name)
    gc.freeze()  # a worker collects after each task, and nothing of this is garbage
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    run()
