"""What tests of a whole load ask of it: rows of members, their steps, and its end."""


def others(rows, name):
    return {other: row for other, row in rows.items() if other != name}


def steps_of(load, member):
    """What happened to a member, with the partitions concerned."""
    lines = [line for line in load.history() if line["member"] == member]
    skipped = ("committed", "error")
    return [
        (line["event"], line.get("partitions")) for line in lines if line["event"] not in skipped
    ]


def end(load):
    load.ask("quit")
    assert load.process.wait(timeout=60) == 0, load.output
    assert "Traceback" not in load.output
