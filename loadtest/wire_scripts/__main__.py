"""Tell stories: `python -m loadtest.wire_scripts --bootstrap HOST:PORT,… --seed N NAME…`.

They are told at the same time, each in a group that goes by its name. The seed decides how long
members pause between requests. Exit code 1 if a story did not go as it should; the last line says
where.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from random import Random

from loadtest.wire import WireError
from loadtest.wire_scripts.duplicate_instance_ids import DUPLICATES
from loadtest.wire_scripts.group import Group, make_room
from loadtest.wire_scripts.known_defects import DEFECTS
from loadtest.wire_scripts.leader_restarts import LEADERS
from loadtest.wire_scripts.members import Unexpected
from loadtest.wire_scripts.protocol_corners import STORIES

TOLD = {story.__name__: story for story in (*STORIES, *DUPLICATES, *DEFECTS, *LEADERS)}
"""All of them, by their names."""


async def tell(names: Sequence[str], ports: Sequence[int], seed: int) -> list[str]:
    """Tell all stories of those names at the same time, each to its end; return what went wrong."""
    make_room()

    async def one(name: str) -> None:
        group = Group(name, dict(enumerate(ports, 1)), rng=Random(f"{seed}:{name}"))
        await group.find()
        await TOLD[name](group)
        print(f"{name}: told", flush=True)

    ends = await asyncio.gather(*map(one, names), return_exceptions=True)
    for end in ends:
        if end is not None and not isinstance(end, Unexpected | WireError):
            raise end
    return [str(end) for end in ends if end is not None]


def main() -> None:
    """Read the command line and tell."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.wire_scripts", description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="+", choices=TOLD)
    given = parser.parse_args()
    print("telling", *given.names, flush=True)  # from here on, nothing keeps it waiting
    ports = [int(address.rpartition(":")[2]) for address in given.bootstrap.split(",")]
    if wrong := asyncio.run(tell(given.names, ports, given.seed)):
        print("groupquake:", "; ".join(wrong), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
