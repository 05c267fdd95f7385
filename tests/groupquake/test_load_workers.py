"""The line by which a user starts workers, and what is said of other machines."""

from groupquake.load_workers import ONLY_HERE, WorkerOptions


def said(host: str, **more: bool) -> list[str]:
    lines: list[str] = []
    WorkerOptions(elsewhere=2, listen=f"{host}:5557").start(lines.append, **more).announce(
        "file.py"
    )
    return lines


def test_workers_of_this_machine_get_their_line() -> None:
    for host in ("127.0.0.1", "127.0.0.2", "localhost"):
        [line] = said(host)
        assert line == (
            "start each of 2 workers: locust -f file.py --worker"
            f" --master-host {host} --master-port 5557"
        )
    assert said("127.0.0.1", otel=True)[-1].endswith("--master-port 5557 --otel")


def test_workers_of_others_are_warned_of_brokers_that_they_cannot_reach() -> None:
    for brokers_elsewhere in (False, True):
        lines = said("10.0.0.1", brokers_elsewhere=brokers_elsewhere)
        assert (ONLY_HERE in lines) is not brokers_elsewhere
        assert lines[-1].endswith("--master-host 10.0.0.1 --master-port 5557")


def test_no_worker_is_sent_to_an_address_that_is_none() -> None:
    for host in ("0.0.0.0", "*"):
        assert "--master-host ADDRESS_OF_THIS_MACHINE --master-port 5557" in said(host)[-1]
