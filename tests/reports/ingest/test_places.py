"""Files that are written into a run folder, which somebody else may have made."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkConf, SparkContext

from reports import ExecutionError
from reports.ingest import places, spark, uris

UNABLE = "-XX:ReservedCodeCacheSize=1k"
NO_SPARK = cast(Any, SimpleNamespace())  # on this machine it writes nothing


def write_texts(file: Path) -> None:
    places.write_texts(NO_SPARK, uris.uri_of(file.parent), {file.name: "new\n"})


def part(file: Path) -> Path:
    return file.with_name(f".{file.name}.part")


def itself(file: Path) -> Path:
    return file


def start_jvm(file: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SparkContext, "_gateway", None)
        with suppress(ExecutionError):
            spark.start_jvm(SparkConf().set("spark.driver.extraJavaOptions", UNABLE), file)


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize(
    ("name", "write", "planted"),
    [
        ("verdict.json", write_texts, part),
        ("verdict.json", write_texts, itself),
        ("spark.log", start_jvm, itself),
    ],
)
def test_nothing_is_written_through_a_planted_link(
    name: str, write: Callable[[Path], None], planted: Callable[[Path], Path],
    link: Callable[[Path, Path], None], tmp_path: Path,
) -> None:  # fmt: skip
    precious, file = tmp_path / "precious", tmp_path / "run" / name
    precious.write_text("mine\n")
    file.parent.mkdir()
    link(planted(file), precious)
    write(file)
    assert precious.read_text() == "mine\n"
    assert file.is_file()
    assert not file.is_symlink()
    assert file.stat().st_nlink == 1
    assert file.read_text() not in ("", "mine\n")


def test_a_log_that_is_ours_is_continued_and_no_fifo_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    os.mkfifo(log)
    start_jvm(log)
    start_jvm(log)
    assert log.read_text().count("Could not create the Java Virtual Machine") == 2


def test_a_link_to_a_folder_is_removed_and_not_the_folder(tmp_path: Path) -> None:
    (tmp_path / "mine" / "there").mkdir(parents=True)
    (tmp_path / "tables").symlink_to(tmp_path / "mine")
    uris.remove(uris.uri_of(tmp_path), ["tables"])
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "there").is_dir()
