"""`groupquake run NAME --ui`: Locust's page, with the form filled in."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from chaos.clusters.ports import require_free
from groupquake.load_process import environment, locustfile


def become_locust(
    port: int,
    experiment: str,
    kafka: str | None,
    coordinator: str | None,
    seed: int | None,
    run_options: Sequence[str],
) -> NoReturn:
    """Become a Locust with a page on 127.0.0.1, from which runs are started.

    The form offers what is given; `run_options` go to every run. Raises ClusterError if the port
    is in use.
    """
    require_free([port])
    form = {"experiment": experiment, "kafka": kafka, "coordinator": coordinator, "seed": seed}
    command = [
        *(sys.executable, "-m", "locust", "-f", str(locustfile())),
        *("--web-host", "127.0.0.1", "--web-port", str(port)),
        *(f"--{name}={value}" for name, value in form.items() if value is not None),
        *(f"--run-option={option}" for option in run_options),
    ]
    print(f"open http://127.0.0.1:{port} and press Start; Ctrl-C here ends it", file=sys.stderr)
    sys.stderr.flush()
    os.execve(sys.executable, command, environment())  # noqa: S606 (a list, no shell)
