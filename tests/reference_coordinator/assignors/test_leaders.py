"""What real leaders sent: librdkafka's, in the recordings and in a sample out of library runs."""

from collections import Counter
from functools import partial

import pytest
import yaml

from reference_coordinator.assignors.range_and_round_robin import assign_ranges
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.assignors.leaders import (
    Led,
    in_order_of_librdkafka,
    read,
    sampled,
)

as_librdkafka = partial(assign_ranges, order=in_order_of_librdkafka)


def sent(led: Led) -> dict[str, list]:
    """The shares, by member id."""
    return {member_id: [*share.partitions] for member_id, share in led.shares.items()}


def shared_out(led: Led) -> dict[str, int]:
    """How many partitions topics have: logs do not say, but a leader shares all of them out."""
    counts: Counter[str] = Counter()
    for share in led.shares.values():
        for topic, partition in share.partitions:
            counts[topic] = max(counts[topic], partition + 1)
    return counts


@pytest.mark.parametrize("name", RECORDINGS)
def test_leaders_of_a_recording_sent_what_range_says(name):
    recording = RECORDINGS[name]
    experiment = yaml.safe_load((recording.folder / "experiment.yaml").read_text())
    partitions = {topic["name"]: topic["partitions"] for topic in experiment["workload"]["topics"]}
    leaders = list(read(line.request for line in recording.lines if line.request))
    for led in leaders:
        assert led.assignor == "range"
        assert sent(led) == assign_ranges(led.members, partitions)
        assert sent(led) == as_librdkafka(led.members, partitions)
    assert Counter(led.kind for led in leaders) == {"static": 3, "dynamic": 3}


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_in_groups_of_one_kind_clients_agree(kind):
    leaders = [led for led in sampled() if led.kind == kind]
    for led in leaders:
        assert sent(led) == assign_ranges(led.members, shared_out(led))
        assert sent(led) == as_librdkafka(led.members, shared_out(led))
    assert len(leaders) == 40
    assert max(len(led.members) for led in leaders) > 4


def test_in_groups_of_both_kinds_librdkafka_puts_no_static_members_first():
    leaders = [led for led in sampled() if led.kind == "mixed"]
    for led in leaders:
        assert sent(led) == as_librdkafka(led.members, shared_out(led))
    as_java = [sent(led) == assign_ranges(led.members, shared_out(led)) for led in leaders]
    assert Counter(as_java) == {False: 27, True: 13}
