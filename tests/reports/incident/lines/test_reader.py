"""One line of a broker's `server.log`: used, irrelevant or rejected, and what it says."""

from zoneinfo import ZoneInfo

from reports.incident.lines.form import Form, recognised
from reports.incident.lines.reader import LONGEST, Read, Reader

UTC = ZoneInfo("UTC")
AT = "[2026-11-23 07:36:12,357] INFO "
PREPARING = (
    "[GroupCoordinator 2]: Preparing to rebalance group dynamic in state PreparingRebalance with"
    " old generation 0 (__consumer_offsets-3) (reason: Adding new member"
    " c-f16351f5-996e-42c3-a846-07c023f0f2b1 with group instance id None; client reason: not"
    " provided) (kafka.coordinator.group.GroupCoordinator)"
)
FAILED = (
    "[GroupCoordinator id=1 topic=__consumer_offsets partition=5] Member m in group g has failed,"
    " removing it from the group. (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
OTHER = "[Partition orders-1 broker=1] Shrinking ISR (kafka.cluster.Partition)"


def read(text: str, zone: ZoneInfo = UTC) -> Read:
    return Reader(Form(), zone).read(text)


def test_a_line_of_each_coordinator_is_used() -> None:
    [scala] = read(AT + PREPARING).lines
    [java] = read(AT + FAILED).lines
    assert (scala.broker, scala.template, scala.group) == ("2", "preparing", "dynamic")
    assert (scala.partition, scala.fields["reason"]) == (3, "new_member")
    assert (java.broker, java.partition, java.template) == ("1", 5, "session_expired")
    assert scala.at_ms == 1_795_419_372_357.0


def test_the_time_is_that_of_the_brokers_time_zone() -> None:
    [line] = read(AT + PREPARING, ZoneInfo("Europe/Berlin")).lines
    assert line.at_ms == 1_795_419_372_357.0 - 3_600_000


OF_OTHERS = (
    "",
    "\tat kafka.server.KafkaApis.handle(KafkaApis.scala:242)",
    "\tgroup.coordinator.threads = 1",
    AT + OTHER,
    AT + "KafkaConfig values: ",
    AT + "[ShareCoordinator id=1] Startup complete."
    " (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)",
    AT + "[TransactionCoordinator id=1] Startup complete."
    " (kafka.coordinator.transaction.TransactionCoordinator)",
)
DAMAGED = (
    ((AT + PREPARING)[:90], "cut off"),
    (PREPARING, "without a time"),
    (AT + FAILED.replace("has failed", "has fallen"), "no grammar"),
    (AT + FAILED.replace("GroupMetadataManager)", "GroupMetadataManage r)"), "cut off"),
    ("[2026-13-23 07:36:12,357] INFO " + FAILED, "no possible time"),
    (AT + PREPARING + "x" * LONGEST, "characters in one line"),
)


def test_lines_of_others_are_irrelevant_and_damaged_ones_of_a_coordinator_rejected() -> None:
    for text in OF_OTHERS:
        assert read(text) == ("irrelevant", [], ""), text
    for text, why in DAMAGED:
        found = read(text)
        assert (found.status, found.lines) == ("rejected", []), why
        assert why in found.why


def test_what_a_killed_broker_cut_off_hides_no_line_of_its_successor() -> None:
    found = read((AT + PREPARING)[:90] + AT + FAILED)
    assert found.status == "rejected"
    assert [line.template for line in found.lines] == ["session_expired"]
    assert [line.template for line in read((AT + OTHER)[:50] + AT + FAILED).lines] == [
        "session_expired"
    ]


def test_every_line_is_counted_in_the_summary() -> None:
    reader = Reader(Form(), UTC)
    for text in (AT + PREPARING, AT + OTHER, "\tat stack", (AT + FAILED)[:70]):
        reader.read(text)
    seen = reader.summary()
    assert seen.statuses == {"used": 1, "irrelevant": 2, "rejected": 1}
    assert (seen.timed, seen.brokers) == (3, {"2": 1})


def test_a_process_names_its_broker_and_its_cluster() -> None:
    reader = Reader(Form(), UTC)
    reader.read(
        AT + "[BrokerLifecycleManager id=3] Incarnation xyz of broker 3 in cluster abc is now"
        " STARTING. (kafka.server.BrokerLifecycleManager)"
    )
    reader.read("\tbroker.id = 3")
    seen = reader.summary()
    assert (seen.said, seen.cluster_marks) == ({"3": 2}, [(0, "", "abc")])


def test_groups_of_other_protocols_are_named() -> None:
    reader = Reader(Form(), UTC)
    text = (
        "[GroupCoordinator id=1 topic=__consumer_offsets partition=5] [GroupId modern] Member m"
        " joins the consumer group using the consumer protocol."
        " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
    )
    found = reader.read(AT + text)
    assert (found.status, "modern" in found.why) == ("rejected", True)
    assert reader.summary().others == {"modern": "consumer"}


def test_a_record_of_several_lines_lasts_until_its_last() -> None:
    reader = Reader(Form(), UTC)
    later = AT.replace("36:12", "36:15") + FAILED
    assert len(reader.read(AT + PREPARING + later).lines) == 2
    seen = reader.summary()
    assert (seen.timed, (seen.last_ms or 0.0) - (seen.first_ms or 0.0)) == (2, 3000.0)


def test_a_number_in_a_message_is_no_time() -> None:
    lines = [f"1795419372 INFO {FAILED}", "\tlog.segment.bytes = 1073741824", "# 1073741824 bytes"]
    for before in ("", "kafka-1  | "):
        texts = [before + line for line in lines]
        reader = Reader(recognised(texts), UTC)
        assert [reader.read(text).status for text in texts] == ["used", "irrelevant", "irrelevant"]
        seen = reader.summary()
        assert (seen.timed, seen.back_ms, seen.last_ms) == (1, 0.0, 1_795_419_372_000.0)
