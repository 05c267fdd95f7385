"""What lines about failed writes name."""

from kafka_protocol.append_errors import AppendError, append_error

LINES = {
    "Writing records to __consumer_offsets-4 failed due to: For requests intended only for the "
    "leader, this error indicates that the broker is not the current leader. For requests intended "
    "for any replica, this error indicates that the broker is not a replica of the topic "
    "partition..": AppendError.NOT_LEADER,
    "Writing records to __consumer_offsets-6 failed due to: The request included a message larger "
    "than the max message size the server will accept..": AppendError.TOO_LARGE,
    "Writing records to __consumer_offsets-6 failed due to: Messages are rejected since there are "
    "fewer in-sync replicas than required..": AppendError.NOT_REPLICATED,
    "Writing records to __consumer_offsets-6 failed due to: Messages are written to the log, but "
    "to fewer in-sync replicas than required..": AppendError.APPENDED,
    "Writing records to __consumer_offsets-6 failed due to: No space left.": AppendError.UNNAMED,
    # 4.4 on
    "Failed to write records to __consumer_offsets-4 because this broker is no longer the leader "
    "of the partition.": AppendError.NOT_LEADER,
    "Failed to write a batch of 2 record(s) to __consumer_offsets-4 because it is larger than the "
    "maximum batch size of 1000 bytes. This usually means that a single record is too large. "
    "Consider increasing the maximum batch size.": AppendError.TOO_LARGE,
    "Failed to write records to __consumer_offsets-4 due to an unexpected error: Messages are "
    "rejected since there are fewer in-sync replicas than required..": AppendError.NOT_REPLICATED,
    "Failed to write records to __consumer_offsets-4 because the producer 7 with epoch 1 has been "
    "fenced.": AppendError.UNNAMED,
    "Offset commit Map(timed out-3 -> x) from group static, consumer failed-1 with generation 1 "
    "failed when appending to log due to org.apache.kafka.common.errors."
    "NotLeaderOrFollowerException": AppendError.NOT_LEADER,
    "Appending metadata message for group g generation 3 failed due to org.apache.kafka.common."
    "errors.NotEnoughReplicasException, returning COORDINATOR_NOT_AVAILABLE error code to the "
    "client": AppendError.NOT_REPLICATED,
    "Appending metadata message for group g generation 3 failed due to org.apache.kafka.common."
    "errors.NotEnoughReplicasAfterAppendException, returning COORDINATOR_NOT_AVAILABLE error code "
    "to the client": AppendError.APPENDED,
    "Metadata from group g with generation 3 failed when appending to log due to "
    "org.apache.kafka.common.errors.TimeoutException": AppendError.TIMED_OUT,
    "Appending metadata message for group g generation 3 failed due to "
    "org.apache.kafka.common.errors.RecordTooLargeException, returning UNKNOWN error code to the "
    "client": AppendError.TOO_LARGE,
}


def test_a_line_names_the_error() -> None:
    assert {line: append_error(line) for line in LINES} == LINES
