// A group member with kafkajs. It prints the JSON lines of Kafka's VerifiableConsumer.
//
// kafkajs has no static membership and no range assignor: its members are dynamic, by round robin.
'use strict'

const fs = require('node:fs')
const { Kafka, PartitionAssigners, logLevel } = require('kafkajs')

const setting = (name) => process.env[`GROUPQUAKE_${name}`] ?? ''
const say = (name, fields = {}) =>
  console.log(JSON.stringify({ timestamp: Date.now(), name, ...fields }))

function security () {
  if (!setting('CLIENT_PROPERTIES')) return {}
  const lines = fs.readFileSync(setting('CLIENT_PROPERTIES'), 'utf8').split('\n')
  const given = Object.fromEntries(
    lines.filter((line) => line).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
  )
  const found = {}
  const file = (key) => (given[key] ? fs.readFileSync(given[key]) : undefined)
  if ((given['security.protocol'] ?? '').endsWith('SSL')) {
    found.ssl = {
      ca: file('ssl.ca.location'),
      cert: file('ssl.certificate.location'),
      key: file('ssl.key.location') ?? file('ssl.certificate.location'),
      passphrase: given['ssl.key.password']
    }
    if (given['ssl.endpoint.identification.algorithm'] === 'none') {
      found.ssl.checkServerIdentity = () => undefined
    }
  }
  if (given['sasl.mechanism']) {
    found.sasl = {
      mechanism: given['sasl.mechanism'].toLowerCase(),
      username: given['sasl.username'],
      password: given['sasl.password']
    }
  }
  return found
}

async function main () {
  if (setting('INSTANCE_ID')) {
    console.error('kafkajs has no static membership (KIP-345): make the member dynamic')
    process.exit(64)
  }
  const kafka = new Kafka({
    clientId: setting('CLIENT_ID'),
    brokers: setting('BOOTSTRAP').split(','),
    logLevel: logLevel.WARN,
    ...security()
  })
  const consumer = kafka.consumer({
    groupId: setting('GROUP'),
    sessionTimeout: Number(setting('SESSION_TIMEOUT_MS')),
    heartbeatInterval: Number(setting('HEARTBEAT_INTERVAL_MS')),
    rebalanceTimeout: Number(setting('MAX_POLL_INTERVAL_MS')),
    metadataMaxAge: Number(setting('METADATA_MAX_AGE_MS')),
    maxWaitTimeInMs: 500,
    partitionAssigners: [PartitionAssigners.roundRobin]
  })
  let owned = []
  const giveUp = () => {
    say('partitions_revoked', { partitions: owned })
    owned = []
  }
  const { GROUP_JOIN, REBALANCING, COMMIT_OFFSETS, CRASH } = consumer.events
  consumer.on(REBALANCING, giveUp)
  consumer.on(GROUP_JOIN, ({ payload }) => {
    if (owned.length) giveUp()
    owned = Object.entries(payload.memberAssignment).flatMap(([topic, numbers]) =>
      numbers.map((partition) => ({ topic, partition }))
    )
    say('partitions_assigned', { partitions: owned })
  })
  consumer.on(COMMIT_OFFSETS, ({ payload }) => {
    const offsets = payload.topics.flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, offset }) => ({ topic, partition: Number(partition), offset: Number(offset) }))
    )
    say('offsets_committed', { offsets, success: true })
  })
  consumer.on(CRASH, ({ payload }) => {
    say('error', { error: String(payload.error), restart: payload.restart })
    if (!payload.restart) process.exit(1)
  })
  let closing = false
  process.on('SIGTERM', async () => {
    if (closing) return
    closing = true
    await consumer.disconnect() // it leaves
    if (owned.length) giveUp()
    say('shutdown_complete')
    process.exit(0)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: setting('TOPICS').split(','), fromBeginning: true })
  await consumer.run({
    autoCommitInterval: Number(setting('COMMIT_INTERVAL_MS')),
    eachMessage: async ({ topic, partition, message }) => {
      const offset = Number(message.offset)
      const record = { topic, partition, count: 1, minOffset: offset, maxOffset: offset }
      say('records_consumed', { count: 1, partitions: [record] })
    }
  })
  say('startup_complete')
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
