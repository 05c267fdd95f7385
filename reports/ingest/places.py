"""Places: the URIs of evidence and results, which Spark reads and writes.

Tables are Spark's own business; here are the small files around them. Spark reads those of a run
folder that is not on this machine into a temporary folder. Every step works on Spark Connect, too.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from reports.ingest import uris
from reports.ingest.uris import literal, local_path
from reports.judgement.log.log_places import LOG
from reports.judgement.run.faults import OF_A_RUN
from reports.judgement.run.forecast import FILE as FORECAST
from reports.judgement.run.run_folder import HISTORY, RunFolder

SMALL_FILES = f"{{{','.join(OF_A_RUN)},{FORECAST},machine.jsonl,jvm-*.log}}"
"""What `RunFolder` reads of a run folder, as a glob of file names."""


@contextmanager
def run_folder(spark: SparkSession, uri: str) -> Iterator[RunFolder]:
    """Give the run folder at a URI; what Spark had to read for it is deleted in the end.

    Raises EvidenceError, when read, where it is not the folder of a run.
    """
    path = local_path(uri)
    if path is not None and path.is_dir():
        yield RunFolder(path)
        return
    with tempfile.TemporaryDirectory(prefix="groupquake-") as temporary:
        folder = Path(temporary)
        yield RunFolder(folder, uri, _fetched(spark, uri, folder))


def _fetched(spark: SparkSession, uri: str, folder: Path) -> dict[str, int]:
    """Copy the small files of a run folder; return the names and bytes of its large ones."""
    within = F.regexp_extract("path", r"((brokers|tap)/[^/]+/[^/]+|[^/]+)$", 1).alias("name")
    for row in _files(spark, uri, SMALL_FILES).select(within, "content").toArrow().to_pylist():
        (folder / row["name"]).parent.mkdir(parents=True, exist_ok=True)
        (folder / row["name"]).write_bytes(row["content"])
    large = _files(spark, uri, f"{{{LOG},{HISTORY}}}").select(within, "length")
    return {row["name"]: row["length"] for row in large.toArrow().to_pylist()}


def _files(spark: SparkSession, uri: str, names: str) -> DataFrame:
    """List the files under a URI whose names match a glob: path, length and content."""
    return _below(spark).option("pathGlobFilter", names).load(literal(uri))


def _below(spark: SparkSession) -> DataFrameReader:
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true")


def refuse_results(spark: SparkSession, uri: str, names: Iterable[str]) -> None:
    """Raise EvidenceError where a folder has one of some names in it already."""
    folder = local_path(uri)
    if folder is not None:
        there = [name for name in names if (folder / name).exists()]
    else:
        results = f"{literal(uri)}/{{{','.join(names)}}}"
        try:
            files = _below(spark).load(results).select("path").limit(1).toArrow().to_pylist()
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            files = []
        within = [urlsplit(row["path"]).path.removeprefix(urlsplit(uri).path) for row in files]
        there = [path.split("/")[1] for path in within]
    uris.refuse_results(uri, there)


def write_texts(spark: SparkSession, uri: str, texts: Mapping[str, str]) -> None:
    """Write text files, by name, into the folder at a URI, in place of those that are there.

    On this machine each is a file. Spark has no writer for a single named file, so that elsewhere
    each name is a folder with one text file in it; `spark.read.text(…, wholetext=True)` reads both.
    """
    if (folder := local_path(uri)) is not None:
        uris.write_texts(folder, texts)
        return
    for name, text in texts.items():
        row = spark.createDataFrame([(text.removesuffix("\n"),)], "value STRING")
        row.coalesce(1).write.mode("overwrite").text(f"{uri}/{name}")
