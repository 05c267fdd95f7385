"""Brokers that also write what Kafka's own logging files make them write: `stock/server.log`.

Records such logs for the tests: `python -m tests.recorded.stock_logs FOLDER [--kafka X]
[--coordinator Y]`. The log is rotated by size, so that a short run has many files.
"""

import argparse
import gzip
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from chaos.clusters.process import ProcessCluster
from loadtest.wire_scripts.__main__ import run_scripts
from tests.chaos.clusters.clients import create_topic

PATTERN = "[%d] %p %m (%c)%n"
"""The pattern of every `log4j.properties` and `log4j2.yaml` that Kafka ships."""
PART_KB = 24
SCRIPTS = ("fencing", "returning", "removal", "sessions", "absent", "pending", "mixed")
CONFIG: dict[str, str | int | bool] = {
    "group.initial.rebalance.delay.ms": 500,
    "group.min.session.timeout.ms": 1000,
    "offsets.topic.num.partitions": 4,
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
}


class StockLogged(ProcessCluster):
    """Brokers whose root logger has one appender more, in Kafka's stock pattern at INFO."""

    def _write_files(self) -> None:
        super()._write_files()
        for broker in self._brokers.values():
            file = broker.folder / self._release.logging.name
            text = file.read_text()
            file.write_text(_log4j_2(text) if file.suffix == ".yaml" else _log4j_1(text))


def _log4j_1(text: str) -> str:
    appender = {
        "": "org.apache.log4j.RollingFileAppender",
        ".File": "${groupquake.folder}/stock/server.log",
        ".MaxFileSize": f"{PART_KB}KB",
        ".MaxBackupIndex": "1000",
        ".Threshold": "INFO",
        ".layout": "org.apache.log4j.PatternLayout",
        ".layout.ConversionPattern": PATTERN,
    }
    lines = [f"log4j.appender.stock{key}={value}" for key, value in appender.items()]
    return "\n".join([text.replace("INFO, server", "INFO, server, stock"), *lines, ""])


def _log4j_2(text: str) -> str:
    file = yaml.safe_load(text)
    configuration: dict[str, Any] = file["Configuration"]
    configuration["Appenders"]["RollingFile"] = {
        "name": "stock",
        "fileName": "${sys:groupquake.folder}/stock/server.log",
        "filePattern": "${sys:groupquake.folder}/stock/server.log.%i.gz",
        "PatternLayout": {"pattern": PATTERN},
        "SizeBasedTriggeringPolicy": {"size": f"{PART_KB} KB"},
        "DefaultRolloverStrategy": {"fileIndex": "nomax"},
    }
    loggers = configuration["Loggers"]
    root = loggers["Root"]
    for logger in (root, *loggers["Logger"]):
        if logger.get("name") == "kafka.request.logger":
            continue  # Kafka's files send it elsewhere, at WARN
        if (to := logger.get("AppenderRef")) is None:
            continue  # it has what its parent has
        stock = {"ref": "stock", "level": "INFO"}  # a dict each: Jackson reads no aliases
        logger["AppenderRef"] = [*(to if isinstance(to, list) else [to]), stock]
    return yaml.safe_dump(file)


def play(cluster: StockLogged) -> None:
    """Let groups rebalance for many reasons, then restart the broker."""
    create_topic(cluster, "orders")
    ports = [broker.port for broker in cluster.brokers]
    errors = run_scripts(SCRIPTS, ports, seed=1)
    assert not errors, errors
    cluster.act("stop", 1)
    cluster.act("start", 1)


def parts(folder: Path) -> list[Path]:
    """Return the files of a broker's stock log."""
    return sorted((folder / "1" / "stock").iterdir())


def pack(files: list[Path]) -> list[Path]:
    """Compress every other file that is not compressed, as log rotation may; return all."""
    packed = []
    for number, file in enumerate(files):
        if file.suffix == ".gz" or number % 2:
            packed.append(file)
            continue
        target = file.with_name(f"{file.name}.gz")
        target.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        file.unlink()
        packed.append(target)
    return packed


def start(folder: Path, version: str, coordinator: str) -> StockLogged:
    """Return one broker, which is not started yet."""
    return StockLogged(
        f"stock-{folder.name}", folder, version=version, coordinator=coordinator, brokers=1,
        config=CONFIG,
    )  # fmt: skip


def main() -> None:
    """Record the stock log of a broker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kafka", default="4.3.0")
    parser.add_argument("--coordinator", default="java")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="stock-") as temporary:
        cluster = start(Path(temporary) / "cluster", given.kafka, given.coordinator)
        with cluster:
            play(cluster)
        given.folder.mkdir(parents=True)
        for file in pack(parts(Path(temporary) / "cluster")):
            shutil.copy(file, given.folder)


if __name__ == "__main__":
    main()
