from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.java import find_java


def fake_java(home: Path, version_line: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_takes_the_java_of_java_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java = fake_java(tmp_path, f'openjdk version "{version}" 2026-01-01')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java


@pytest.mark.parametrize(("version", "found"), [("11.0.2", "Java 11"), ("1.8.0_402", "Java 8")])
def test_refuses_an_old_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, found: str
) -> None:
    java = fake_java(tmp_path, f'openjdk version "{version}" 2020-01-01')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterError, match=f"{found}; install Java 17 or later") as error:
        find_java()
    assert str(java) in str(error.value)


def test_path_is_searched_without_java_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path, 'openjdk version "17"')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(java.parent))
    assert find_java() == java


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="no java in PATH and JAVA_HOME is not set; install"):
        find_java()


def test_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterError, match=r"JAVA_HOME is .*, but there is no .*bin/java"):
        find_java()


def test_something_else_called_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "an island")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterError, match="does not print its version"):
        find_java()
