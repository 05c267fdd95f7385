"""An S3 server, and what Spark needs to read and write it.

`hadoop-aws` depends on a bundle of all of Amazon's clients (690 MB). These are the parts of it that
it uses (12 MB): Spark has the rest, as the HTTP client and Netty, in its own jars.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
from jgo.maven import MavenContext
from moto.server import ThreadedMotoServer

from chaos.clusters.jars import one_at_a_time
from tests.clusters.standalone import HOST, SPARK_HOME

HADOOP = next((SPARK_HOME / "jars").glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
AWS = "2.35.4"
"""The release of Amazon's clients that this Hadoop is built with."""
AWS_PARTS = """
annotations apache-client arns auth aws-core aws-query-protocol aws-xml-protocol checksums
checksums-spi crt-core endpoints-spi http-auth http-auth-aws http-auth-aws-eventstream http-auth-spi
http-client-spi identity-spi json-utils metrics-spi netty-nio-client profiles protocol-core regions
retries retries-spi s3 s3-transfer-manager sdk-core sts third-party-jackson-core utils utils-lite
"""
COORDINATES = (
    ("org.apache.hadoop", "hadoop-aws", HADOOP),
    ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    ("org.reactivestreams", "reactive-streams", "1.0.4"),
    ("software.amazon.eventstream", "eventstream", "1.0.1"),
    *(("software.amazon.awssdk", part, AWS) for part in AWS_PARTS.split()),
)
BUCKET = "evidence"


def jars() -> list[Path]:
    """Return the jars; the first use downloads them from Maven Central."""
    maven = MavenContext()
    with one_at_a_time():
        return [
            maven.project(group, artifact).at_version(version).artifact().resolve()
            for group, artifact, version in COORDINATES
        ]


@dataclass(frozen=True)
class S3:
    """A server with one bucket."""

    endpoint: str

    @cached_property
    def client(self) -> Any:
        """Amazon's client of it."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
        )

    @property
    def conf(self) -> dict[str, str]:
        """Spark's settings for it."""
        return {
            "spark.jars": ",".join(map(str, jars())),
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": "test",
            "spark.hadoop.fs.s3a.secret.key": "test",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
        }

    def upload(self, folder: Path, name: str) -> str:
        """Store the files of a folder, and return its URI."""
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.client.upload_file(str(file), BUCKET, f"{name}/{file.relative_to(folder)}")
        return f"s3a://{BUCKET}/{name}"

    def names(self, name: str) -> list[str]:
        """List what is stored below a name."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=name)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def download(self, name: str, folder: Path) -> Path:
        """Copy what is stored below a name into a folder.

        A text that Spark wrote as a folder with one file becomes that file again.
        """
        for key in self.names(f"{name}/"):
            within = Path(key).relative_to(name)
            if within.parts[0] != "tables" and within.name.startswith("part-"):
                within = within.parent
            elif within.name.startswith(("_", ".")) or key.endswith("/"):
                continue
            (folder / within).parent.mkdir(parents=True, exist_ok=True)
            self.client.download_file(BUCKET, key, str(folder / within))
        return folder


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run a server with an empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request
    server = ThreadedMotoServer(ip_address=HOST, port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        s3 = S3(f"http://{host}:{port}")
        s3.client.create_bucket(Bucket=BUCKET)
        yield s3
    finally:
        server.stop()
