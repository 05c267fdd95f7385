"""A fault of one broker of any cluster, as the keys of a file have it."""

import threading
from typing import Any

import yaml

from chaos.fault_context import FaultContext
from scenarios import named
from scenarios.faults import FAULTS, Fault


def fault_of(keys: str, broker: int, cluster: Any, view: Any, stop: threading.Event) -> Fault:
    """Return a fault that hits a broker; its time of day does not matter."""
    given = yaml.safe_load(f"{{at: 0s, target: {{brokers: [{broker}]}}, {keys}}}")
    context = FaultContext(named("demo"), cluster, None, view, stop)
    [fault] = FAULTS[given["fault"]].model_validate(given).aimed(context)
    return fault
