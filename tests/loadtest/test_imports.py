import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PURE = (
    "configs", "dies_with_parent", "errors", "history", "lease_table",
    "members.settings", "options", "timing", "wire_scripts.__main__", "workers.connected",
)  # fmt: skip
"""The modules that processes without gevent import."""


def loaded_by(*modules):
    script = f"import sys, {', '.join(f'loadtest.{name}' for name in modules)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_modules_without_gevent_and_without_kafka_import_neither():
    assert not loaded_by(*PURE) & {"gevent", "locust", "confluent_kafka"}


def test_no_module_but_the_users_patches_the_interpreter():
    assert "locust" not in loaded_by("control", "load", "pool", "page.run", "workers.master")
