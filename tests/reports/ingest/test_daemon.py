"""The search path of Spark's Python workers on this machine."""

from pathlib import Path

import pyspark

from reports.ingest.daemon import installed

PACKAGE = Path(pyspark.__file__).parent
PACKAGES = str(PACKAGE.parent)


def test_the_installed_pyspark_is_imported_and_not_its_archive() -> None:
    archives = [str(PACKAGE / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.zip")]
    assert installed([*archives, "/own", PACKAGES]) == ["/own", PACKAGES]


def test_an_archive_stays_where_it_is_not_that_of_the_installed_pyspark() -> None:
    other = "/opt/spark/python/lib/pyspark.zip"
    assert installed([other, PACKAGES]) == [other, PACKAGES]


def test_an_archive_stays_where_no_pyspark_is_installed() -> None:
    own = str(PACKAGE / "python" / "lib" / "pyspark.zip")
    assert installed([own, "/own"]) == [own, "/own"]
