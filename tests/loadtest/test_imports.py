import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PURE = (
    *("errors", "client_configs", "options", "lease_table", "history", "locust_statistics"),
    *(
        "control_protocol",
        "settings",
        "distribution.received",
        "distribution.spool",
        "distribution.messages",
    ),
)
CLIENTS = ("client_errors", "member", "producer")


def loaded_by(modules):
    script = f"import sys, {', '.join(f'loadtest.{name}' for name in modules)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_modules_without_gevent_do_not_import_it():
    assert not loaded_by(PURE + CLIENTS) & {"gevent", "locust"}


def test_modules_without_kafka_do_not_import_it():
    assert "confluent_kafka" not in loaded_by(PURE)


def test_no_module_but_the_users_patches_the_interpreter():
    modules = (
        "control",
        "client_pool",
        "member_handle",
        "duplicate_process",
        "blocking_calls",
        "load",
    )
    assert "locust" not in loaded_by(modules)
