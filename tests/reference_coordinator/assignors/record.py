"""Records what Kafka's own assignors answer to random groups, into `java.json.xz`.

    python -m tests.reference_coordinator.assignors.record kafka-clients-X.jar slf4j-api-Y.jar

It needs a JDK (17 or newer), which compiles the Java beside it; the tests need none.
"""

import json
import lzma
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from random import Random

from reference_coordinator.assignors import ASSIGNORS
from tests.reference_coordinator.assignors.histories import History, JoinedGroup

HERE = Path(__file__).parent
RECORD = HERE / "java.json.xz"
EACH = 30
"""Groups of each kind: assignor, the same topics or not, sane or confused."""
SEED = 341
"""Chosen because Kafka's assignor fails in some of its groups, which is worth keeping."""
RARE = (10, 112, 211, 419, 1911, 2025)
"""Seeds of groups in which it matters what was moved before, and where Java's sets begin."""


def groups(rng: Random) -> list[JoinedGroup]:
    """Make groups of all kinds."""
    made: list[JoinedGroup] = []
    for seed in RARE:
        made += History(Random(seed), "sticky", alike=False, confused=True).rebalances(4)
    for assignor in ASSIGNORS:
        for alike, confused in ((True, False), (False, False), (True, True), (False, True)):
            kind: list[JoinedGroup] = []
            while len(kind) < EACH:
                kind += History(rng, assignor, alike=alike, confused=confused).rebalances(4)
            made += kind[:EACH]
    return made


def form(group: JoinedGroup) -> dict[str, object]:
    """Put a group into JSON."""
    return {
        "assignor": group.assignor,
        "partitions": group.partitions,
        "members": [
            [member.member_id, member.group_instance_id, b64encode(blob).decode()]
            for member, blob in zip(group.members, group.blobs, strict=True)
        ],
    }


def line(group: JoinedGroup) -> str:
    """Put a group into a line for the Java beside this."""
    topics = ",".join(f"{topic}:{count}" for topic, count in group.partitions.items())
    members = ";".join(
        f"{member.member_id}~{member.group_instance_id or ''}~{b64encode(blob).decode()}"
        for member, blob in zip(group.members, group.blobs, strict=True)
    )
    return f"{group.assignor}|{topics}|{members}"


def answer(text: str) -> dict[str, object]:
    """Put a line of its answers into JSON."""
    if text.startswith("!"):
        return {"exception": text[1:]}
    return {"shares": dict(share.split("~") for share in text.split(";"))}


def record(jars: list[str]) -> None:
    """Ask, and write the record."""
    made = groups(Random(SEED))
    java = ["java", "-XX:TieredStopAtLevel=1", "-cp", ":".join(jars), HERE / "RealAssignors.java"]
    asked = "".join(f"{line(group)}\n" for group in made)
    said = subprocess.run(java, input=asked, text=True, check=True, stdout=subprocess.PIPE).stdout
    content = {
        "made by": Path(jars[0]).name,
        "groups": [
            form(group) | answer(text) for group, text in zip(made, said.splitlines(), strict=True)
        ],
    }
    RECORD.write_bytes(lzma.compress(json.dumps(content).encode(), preset=9))


if __name__ == "__main__":
    record(sys.argv[1:])
