"""`groupquake doctor --log4j` prints what our own brokers write `group.log` with."""

from typing import Any

import pytest
import yaml

from chaos.clusters.releases import release_of
from chaos.errors import UnsupportedError
from groupquake.commands.doctor import snippet


def settings(text: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


@pytest.mark.parametrize("version", ["2.4.1", "2.8.1", "3.9.1"])
def test_log4j_1_writes_what_our_own_brokers_write(version: str) -> None:
    ours = settings(release_of(version).logging.read_text())
    theirs = settings(snippet(version.rpartition(".")[0]))
    rolls = {"MaxFileSize", "MaxBackupIndex"}
    assert theirs["log4j.appender.group"] == "org.apache.log4j.RollingFileAppender"
    assert theirs["log4j.appender.group.File"] == "${kafka.logs.dir}/group.log"
    assert rolls == {key.rpartition(".")[2] for key in theirs.keys() - ours.keys()}
    changed = {"log4j.appender.group", "log4j.appender.group.File"}
    for key in theirs.keys() & ours.keys() - changed:
        assert theirs[key] == ours[key].replace("INFO, server", "INFO"), key
    left = ours.keys() - theirs.keys()
    assert all(key.startswith("log4j.appender.server") or "root" in key for key in left), left


def appenders(config: Any, name: str) -> list[str]:
    """Return the appenders that a line of a logger comes to: its own, and those of loggers above.

    A filter of an appender may refuse the line.
    """
    loggers = {one["name"]: one for one in config["Loggers"]["Logger"]}
    found: list[str] = []
    while name:
        logger = loggers.get(name, {})
        found += [to["ref"] for to in logger.get("AppenderRef", ())]
        if logger.get("additivity") is False:
            return found
        name = name.rpartition(".")[0]
    return [*found, "root"]


def test_log4j_2_writes_what_our_own_brokers_write_and_no_line_twice() -> None:
    ours = yaml.safe_load(release_of("4.3.0", "java").logging.read_text())["Configuration"]
    theirs = yaml.safe_load(snippet("4.3"))
    (file,) = theirs["Appenders"]["File"]
    assert file == ours["Appenders"]["File"][0] | {"fileName": "${sys:kafka.logs.dir}/group.log"}
    names = [one["name"] for one in ours["Loggers"]["Logger"]]
    assert names == [one["name"] for one in theirs["Loggers"]["Logger"]]
    for name, own, logger in zip(
        names, ours["Loggers"]["Logger"], theirs["Loggers"]["Logger"], strict=True
    ):
        to_group = [to for to in own.get("AppenderRef", ()) if to["ref"] == "group"]
        assert logger.get("AppenderRef", []) == to_group, name
        for key in ("level", "Filters"):
            assert logger.get(key) == own.get(key), name
        reached = ["root" if to == "server" else to for to in appenders(ours, name)]
        assert appenders(theirs, name) == reached, name
        assert reached.count("group") == 1, name


def test_releases_to_come_get_the_newest_file_and_old_ones_are_refused() -> None:
    assert snippet("5.0") == snippet("4.3")
    with pytest.raises(UnsupportedError, match=r"1\.1\.0 is not supported"):
        snippet("1.1")


def test_log4j_1_names_no_appender_that_their_brokers_lack() -> None:
    for value in settings(snippet("3.9")).values():
        assert "server" not in value.partition(",")[2]
        assert "groupquake" not in value
