"""A session of the user's choice: on this machine, a cluster's, or one of Spark Connect."""

import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from reports.ingest import archive
from reports.ingest import spark as this_machine
from reports.ingest.local_session import sigint_kept
from reports.judgement.errors import EvidenceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NONE = "none"
"""As an archive: the executors have our packages already."""
CONF = {**this_machine.COMMON, "spark.speculation": "true"}
"""Settings of a session that is opened here; those of the user count more."""
CONNECT_CONF = {"spark.sql.session.timeZone": "UTC"}
"""Those of them that a session of Spark Connect can change."""
CONNECT_PORT = 15002
REACHED_WITHIN_S = 10
_ADDRESS = re.compile(r"(?:local(?:\[.+\]|-cluster\[.+\])?|yarn)$|(?:spark|sc|k8s)://.")
"""What Spark takes for a master, and the address of a Connect server."""


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs.

    `remote` is the address of a Spark Connect server (`sc://HOST:PORT`), `conf` Spark's settings.
    `archive` is the archive for executors (see `archive`), a path or a URI, or `NONE`; without one
    it is made, where executors are not on this machine. Without `master` and `remote`, it is
    `spark-submit`'s master in a process that this started, else this machine.
    """

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    archive: str | None = None

    @property
    def plain(self) -> bool:
        """Whether Spark runs on this machine and nothing is set."""
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        local = self.remote is None and (self.master or "local[*]").startswith("local")
        return local and not (submitted or self.conf or self.archive)


@contextmanager
def session(options: SparkOptions, size: int, log: Path) -> "Iterator[SparkSession]":
    """Open a session for evidence of `size` bytes; an open session is used as it is.

    Spark's own output goes to `log`. Raises EvidenceError where the cluster cannot be reached.
    """
    if options.plain:
        with this_machine.session(options.master or "local[*]", size, log) as spark:
            yield spark
        return
    from pyspark.sql import SparkSession  # noqa: PLC0415 (it loads slowly)

    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    spark = _open(options, log)
    try:
        if options.archive is not None:
            if options.archive != NONE:
                archive.ship(spark, options.archive)
        elif options.remote is not None or not _on_this_machine(spark):
            archive.ship(spark, archive.cached())
        yield spark
    finally:
        spark.stop()


def _open(options: SparkOptions, log: Path) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415 (it loads slowly)

    builder = SparkSession.builder.appName("groupquake")
    if options.remote is not None:
        reach(options.remote)
        return (
            builder.remote(options.remote)
            .config(map={**CONNECT_CONF, **options.conf})
            .getOrCreate()
        )
    if options.master is not None:
        reach(options.master)
        builder = builder.master(options.master)
        if options.master.startswith("local"):
            os.environ["PYSPARK_PYTHON"] = sys.executable
    with sigint_kept(), this_machine.stderr_to(log):
        return builder.config(map={**CONF, **options.conf}).getOrCreate()


def _on_this_machine(spark: "SparkSession") -> bool:
    return (spark.conf.get("spark.master") or "").startswith("local")


def reach(address: str) -> None:
    """Raise EvidenceError unless a master or server can be reached: Spark tries for minutes."""
    if not _ADDRESS.match(address):
        raise EvidenceError(
            f"{address}: no master of Spark; give local[*], spark://HOST:PORT, yarn or k8s://URL"
        )
    url = urlsplit(address)
    if url.scheme not in ("spark", "sc"):
        return
    reasons = []
    for server in url.netloc.split(","):
        host, _, port = server.partition(":")
        try:
            socket.create_connection((host, int(port or CONNECT_PORT)), REACHED_WITHIN_S).close()
        except (OSError, ValueError) as error:
            reasons.append(f"{server}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise EvidenceError(f"{address}: Spark cannot be reached there ({'; '.join(reasons)})")
