// A group member with franz-go. It prints the JSON lines of Kafka's VerifiableConsumer.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    *int64 `json:"offset,omitempty"`
}

// consumed are records of a partition whose offsets follow one another.
type consumed struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Count     int64  `json:"count"`
	First     int64  `json:"minOffset"`
	Last      int64  `json:"maxOffset"`
}

func sayConsumed(fetches kgo.Fetches) {
	found := []consumed{}
	fetches.EachRecord(func(record *kgo.Record) {
		if n := len(found) - 1; n >= 0 && found[n].Topic == record.Topic &&
			found[n].Partition == record.Partition && found[n].Last+1 == record.Offset {
			found[n].Last++
			found[n].Count++
			return
		}
		found = append(found, consumed{record.Topic, record.Partition, 1, record.Offset, record.Offset})
	})
	if len(found) > 0 {
		say("records_consumed", map[string]any{"count": fetches.NumRecords(), "partitions": found})
	}
}

var printing sync.Mutex

func say(name string, fields map[string]any) {
	line := map[string]any{"timestamp": time.Now().UnixMilli(), "name": name}
	for key, value := range fields {
		line[key] = value
	}
	text, _ := json.Marshal(line)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

func setting(name string) string { return os.Getenv("GROUPQUAKE_" + name) }

func duration(name string) time.Duration {
	ms, _ := strconv.Atoi(setting(name))
	return time.Duration(ms) * time.Millisecond
}

func partitions(owned map[string][]int32) []partition {
	found := []partition{}
	for topic, numbers := range owned {
		for _, number := range numbers {
			found = append(found, partition{Topic: topic, Partition: number})
		}
	}
	sort.Slice(found, func(a, b int) bool {
		return found[a].Topic < found[b].Topic ||
			found[a].Topic == found[b].Topic && found[a].Partition < found[b].Partition
	})
	return found
}

func listener(name string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, owned map[string][]int32) {
		say(name, map[string]any{"partitions": partitions(owned)})
	}
}

func balancer() kgo.GroupBalancer {
	switch setting("ASSIGNOR") {
	case "roundrobin":
		return kgo.RoundRobinBalancer()
	case "cooperative-sticky":
		return kgo.CooperativeStickyBalancer()
	}
	return kgo.RangeBalancer()
}

func committed(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
	stored := []partition{}
	if response != nil {
		for _, topic := range response.Topics {
			for _, one := range topic.Partitions {
				if one.ErrorCode == 0 {
					stored = append(stored, partition{Topic: topic.Topic, Partition: one.Partition})
				} else if err == nil {
					err = kerr.ErrorForCode(one.ErrorCode)
				}
			}
		}
	}
	line := map[string]any{"offsets": stored, "success": err == nil}
	if err != nil {
		line["error"] = err.Error()
	}
	say("offsets_committed", line)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(setting("BOOTSTRAP"), ",")...),
		kgo.ClientID(setting("CLIENT_ID")),
		kgo.ConsumerGroup(setting("GROUP")),
		kgo.ConsumeTopics(strings.Split(setting("TOPICS"), ",")...),
		kgo.Balancers(balancer()),
		kgo.SessionTimeout(duration("SESSION_TIMEOUT_MS")),
		kgo.HeartbeatInterval(duration("HEARTBEAT_INTERVAL_MS")),
		kgo.RebalanceTimeout(duration("MAX_POLL_INTERVAL_MS")),
		kgo.MetadataMaxAge(duration("METADATA_MAX_AGE_MS")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), // else it could print records of what it has given up meanwhile
		kgo.OnPartitionsAssigned(listener("partitions_assigned")),
		kgo.OnPartitionsRevoked(listener("partitions_revoked")),
		kgo.OnPartitionsLost(listener("partitions_lost")),
	}
	if id := setting("INSTANCE_ID"); id != "" {
		options = append(options, kgo.InstanceID(id))
	}
	client, err := kgo.NewClient(append(options, security()...)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	say("startup_complete", nil)
	due, interval := time.Now().Add(duration("COMMIT_INTERVAL_MS")), duration("COMMIT_INTERVAL_MS")
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		fetches := client.PollFetches(within)
		cancel()
		for _, one := range fetches.Errors() {
			if one.Err != context.DeadlineExceeded && one.Err != context.Canceled {
				say("error", map[string]any{"error": one.Err.Error()})
			}
		}
		sayConsumed(fetches)
		if time.Now().After(due) {
			due = time.Now().Add(interval)
			if offsets := client.UncommittedOffsets(); len(offsets) > 0 {
				client.CommitOffsetsSync(ctx, offsets, committed)
			}
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance() // a dynamic member leaves
	say("shutdown_complete", nil)
}

func security() []kgo.Opt {
	given, options := properties(), []kgo.Opt{}
	user, password := given["sasl.username"], given["sasl.password"]
	switch given["sasl.mechanism"] {
	case "":
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	default:
		fail(fmt.Errorf("sasl.mechanism: %s is not known to this program", given["sasl.mechanism"]))
	}
	if strings.HasSuffix(given["security.protocol"], "SSL") {
		options = append(options, kgo.DialTLSConfig(tlsConfig(given)))
	}
	return options
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// properties are those of TLS and SASL in librdkafka's words: lines key=value.
func properties() map[string]string {
	given := map[string]string{}
	file := setting("CLIENT_PROPERTIES")
	if file == "" {
		return given
	}
	text, err := os.ReadFile(file)
	fail(err)
	for _, line := range strings.Split(string(text), "\n") {
		if key, value, found := strings.Cut(line, "="); found {
			given[key] = value
		}
	}
	return given
}

func tlsConfig(given map[string]string) *tls.Config {
	config := &tls.Config{}
	if file := given["ssl.ca.location"]; file != "" {
		certificates, err := os.ReadFile(file)
		fail(err)
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(certificates) {
			fail(fmt.Errorf("ssl.ca.location: %s holds no certificate", file))
		}
	}
	if file := given["ssl.certificate.location"]; file != "" {
		key := given["ssl.key.location"]
		if key == "" {
			key = file
		}
		pair, err := tls.LoadX509KeyPair(file, key)
		fail(err)
		config.Certificates = []tls.Certificate{pair}
	}
	if given["ssl.endpoint.identification.algorithm"] == "none" {
		// Go checks the chain and the host name together: leave that out, and check the chain.
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(state tls.ConnectionState) error {
			others := x509.NewCertPool()
			for _, one := range state.PeerCertificates[1:] {
				others.AddCert(one)
			}
			_, err := state.PeerCertificates[0].Verify(
				x509.VerifyOptions{Roots: config.RootCAs, Intermediates: others})
			return err
		}
	}
	return config
}
