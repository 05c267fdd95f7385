#!/bin/sh
# Starts one broker, as the images of Apache Kafka do (KIP-975): KAFKA_* variables are its
# properties, and the first start formats the storage. What they mean is left to the release's own
# KafkaDockerWrapper.
set -eu
config=/tmp/kafka

# An option each: the variables are split on purpose.
kafka() {
    # shellcheck disable=SC2086
    exec java ${KAFKA_HEAP_OPTS-} ${KAFKA_JVM_PERFORMANCE_OPTS-} -cp '/opt/kafka/libs/*' "$@"
}

if [ ! -d "$config" ]; then
    mkdir -p "$config.new"
    (kafka kafka.docker.KafkaDockerWrapper setup \
        --default-configs-dir "$config.new" \
        --mounted-configs-dir /mnt/shared/config \
        --final-configs-dir "$config.new")
    mv "$config.new" "$config"
fi
# shellcheck disable=SC2086
kafka ${KAFKA_LOG4J_OPTS-} ${KAFKA_OPTS-} kafka.Kafka "$config/server.properties"
