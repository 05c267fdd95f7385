"""What members that are Java processes are started with: a command line, in the run folder."""

import json
from collections.abc import Callable
from pathlib import Path

from chaos.clusters.jars import tools
from chaos.clusters.java import find_java
from loadtest.settings import JAVA_COMMAND
from scenarios import Experiment

MAIN = "org.apache.kafka.tools.VerifiableConsumer"
HEAP = "-Xmx96m"


def prepare(
    folder: Path, experiment: Experiment, kafka_home: Path | None, progress: Callable[[str], None]
) -> None:
    """Get the jars and write the command into a run folder, if any member is to be one.

    Raises ClusterError if there is no Java, or there are no such jars.
    """
    if all(member.client != "java" for member in experiment.members()):
        return
    progress(f"Kafka {experiment.cluster.version}: getting the jars of its tools")
    java = find_java()
    jars = tools(experiment.cluster.version, kafka_home)
    command = [str(java), HEAP, "-XX:TieredStopAtLevel=1", "-cp", jars.class_path, MAIN]
    (folder / JAVA_COMMAND).write_text(json.dumps(command))
