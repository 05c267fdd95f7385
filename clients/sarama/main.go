// A group member with sarama. It prints the JSON lines of Kafka's VerifiableConsumer.
//
// Sarama reports no result of a commit, so it prints no line about commits.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

type partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

type consumed struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Count     int64  `json:"count"`
	First     int64  `json:"minOffset"`
	Last      int64  `json:"maxOffset"`
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

type handler struct{}

func owned(session sarama.ConsumerGroupSession) map[string]any {
	found := []partition{}
	for topic, numbers := range session.Claims() {
		for _, number := range numbers {
			found = append(found, partition{topic, number})
		}
	}
	sort.Slice(found, func(a, b int) bool {
		return found[a].Topic < found[b].Topic ||
			found[a].Topic == found[b].Topic && found[a].Partition < found[b].Partition
	})
	return map[string]any{"partitions": found}
}

func (handler) Setup(session sarama.ConsumerGroupSession) error {
	say("partitions_assigned", owned(session))
	return nil
}

func (handler) Cleanup(session sarama.ConsumerGroupSession) error {
	say("partitions_revoked", owned(session))
	return nil
}

func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			say("records_consumed", map[string]any{"count": 1, "partitions": []consumed{
				{message.Topic, message.Partition, 1, message.Offset, message.Offset}}})
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.ClientID = setting("CLIENT_ID")
	config.Metadata.RefreshFrequency = duration("METADATA_MAX_AGE_MS")
	group := &config.Consumer.Group
	group.InstanceId = setting("INSTANCE_ID")
	group.Session.Timeout = duration("SESSION_TIMEOUT_MS")
	group.Heartbeat.Interval = duration("HEARTBEAT_INTERVAL_MS")
	group.Rebalance.Timeout = duration("MAX_POLL_INTERVAL_MS")
	group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	if setting("ASSIGNOR") == "roundrobin" {
		group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRoundRobin()}
	}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = duration("COMMIT_INTERVAL_MS")
	config.Consumer.Return.Errors = true
	secure(config)
	client, err := sarama.NewConsumerGroup(strings.Split(setting("BOOTSTRAP"), ","), setting("GROUP"), config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for err := range client.Errors() {
			say("error", map[string]any{"error": err.Error()})
		}
	}()
	say("startup_complete", nil)
	topics := strings.Split(setting("TOPICS"), ",")
	for ctx.Err() == nil {
		err := client.Consume(ctx, topics, handler{})
		if err == nil || ctx.Err() != nil {
			continue
		}
		say("error", map[string]any{"error": err.Error()})
		if errors.Is(err, sarama.ErrFencedInstancedId) {
			os.Exit(1)
		}
		time.Sleep(250 * time.Millisecond)
	}
	client.Close() // a dynamic member leaves
	say("shutdown_complete", nil)
}

func secure(config *sarama.Config) {
	given := properties()
	switch given["sasl.mechanism"] {
	case "":
	case "PLAIN": // sarama brings no SCRAM of its own
		config.Net.SASL.Enable = true
		config.Net.SASL.User, config.Net.SASL.Password = given["sasl.username"], given["sasl.password"]
	default:
		fail(fmt.Errorf("sasl.mechanism: %s is not known to this program", given["sasl.mechanism"]))
	}
	if strings.HasSuffix(given["security.protocol"], "SSL") {
		config.Net.TLS.Enable = true
		config.Net.TLS.Config = tlsConfig(given)
	}
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
