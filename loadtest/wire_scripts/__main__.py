"""Run wire scripts: `python -m loadtest.wire_scripts --bootstrap HOST:PORT,… --seed N NAME…`.

All scripts run at the same time, each in a group of its own name. The seed decides the pauses
between requests. Exit code 1 if a broker responded otherwise than a script expects; the last line
says where.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from kafka_protocol.printable import printable
from loadtest.history import History
from loadtest.wire import WireError
from loadtest.wire.member import UnexpectedResponse
from loadtest.wire_scripts import FINISHED
from loadtest.wire_scripts.duplicate_instance_ids import DUPLICATE_INSTANCE_IDS
from loadtest.wire_scripts.known_defects import KNOWN_DEFECTS
from loadtest.wire_scripts.leader_restarts import LEADER_RESTARTS
from loadtest.wire_scripts.members import Group
from loadtest.wire_scripts.protocol_corners import PROTOCOL_CORNERS

SCRIPTS = {
    script.__name__: script
    for script in (*PROTOCOL_CORNERS, *DUPLICATE_INSTANCE_IDS, *KNOWN_DEFECTS, *LEADER_RESTARTS)
}
"""All scripts by name."""


def run_scripts(
    names: Sequence[str], ports: Sequence[int], seed: int, history: Path | None = None
) -> list[str]:
    """Run the named scripts at the same time, each to its end; return the errors.

    What a script alone sees goes into the client history (`loadtest.history`).
    """

    def run(name: str) -> str | None:
        rng, events = Random(f"{seed}:{name}"), History(history)
        group = Group(name, dict(enumerate(ports, 1)), rng=rng, history=events)
        try:
            group.find()
            SCRIPTS[name](group)
        except (UnexpectedResponse, WireError) as error:
            return str(error)
        finally:
            group.close()
        print(f"{name}: {FINISHED}", flush=True)
        return None

    with ThreadPoolExecutor(len(names)) as scripts:
        return [error for error in scripts.map(run, names) if error is not None]


def main() -> None:
    """Parse the command line and run the scripts."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.wire_scripts", description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--history", type=Path)
    parser.add_argument("names", nargs="+", choices=SCRIPTS)
    given = parser.parse_args()
    print("running", *given.names, flush=True)  # the runner waits for this line
    ports = [int(address.rpartition(":")[2]) for address in given.bootstrap.split(",")]
    if errors := run_scripts(given.names, ports, given.seed, given.history):
        print("groupquake:", printable("; ".join(errors)), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
