"""`groupquake doctor --log4j` prints what our own brokers write `group.log` with."""

import pytest
import yaml

from chaos.clusters.releases import release_of
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


def test_log4j_2_writes_what_our_own_brokers_write_and_no_line_twice() -> None:
    ours = yaml.safe_load(release_of("4.3.0", "java").logging.read_text())["Configuration"]
    theirs = yaml.safe_load(snippet("4.3"))
    (file,) = theirs["Appenders"]["File"]
    assert file == ours["Appenders"]["File"][0] | {"fileName": "${sys:kafka.logs.dir}/group.log"}
    assert len(theirs["Loggers"]["Logger"]) == len(ours["Loggers"]["Logger"]) == 5
    pairs = zip(theirs["Loggers"]["Logger"], ours["Loggers"]["Logger"], strict=True)
    for logger, own in pairs:
        assert logger["AppenderRef"] == [own["AppenderRef"][0]]
        assert (logger["name"], logger["level"]) == (own["name"], own["level"])
    goes_on = [one["name"] for one in theirs["Loggers"]["Logger"] if "additivity" not in one]
    runtime = "org.apache.kafka.coordinator.common.runtime"
    assert goes_on == ["org.apache.kafka.coordinator.group", runtime]


def test_log4j_1_names_no_appender_that_their_brokers_lack() -> None:
    for value in settings(snippet("3.9")).values():
        assert "server" not in value.partition(",")[2]
        assert "groupquake" not in value
