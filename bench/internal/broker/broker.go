// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

const (
	// readyLimit: a broker takes 5 s to 15 s on two cores.
	readyLimit = 90 * time.Second
	// Partitions of each topic.
	Partitions = 16
)

// Broker is a Kafka broker, which also is the controller, as a process of its own.
type Broker struct {
	// Address is host:port, without TLS and passwords.
	Address string

	dir   string
	cmd   *exec.Cmd
	log   bytes.Buffer // to be read after the end
	ended chan struct{}
}

// Start starts a broker of the jars in a folder. It keeps its files below dir.
func Start(ctx context.Context, jars, dir string) (*Broker, error) {
	if jar, err := filepath.Glob(filepath.Join(jars, "kafka_*.jar")); err != nil || len(jar) == 0 {
		return nil, fmt.Errorf("find the broker in %s: got no kafka_*.jar; make bin/kafka makes it", jars)
	}
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	b := &Broker{dir: dir, Address: ports[0], ended: make(chan struct{})}
	properties := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(properties, []byte(b.properties(ports[1])), 0o600); err != nil {
		return nil, fmt.Errorf("configure the broker: %w", err)
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x7f           // a text that begins with a dash is taken for an option
	format := exec.CommandContext(ctx, "java", java(jars, "kafka.tools.StorageTool", "format", "--cluster-id", base64.RawURLEncoding.EncodeToString(id[:]), "-c", properties)...)
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format the broker's disk: %w: %s", err, out)
	}
	b.cmd = exec.Command("java", java(jars, "kafka.Kafka", properties)...) //nolint:noctx // end ends it
	b.cmd.Stdout, b.cmd.Stderr = &b.log, &b.log
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	go func() {
		defer close(b.ended)
		_ = b.cmd.Wait() // the log has why
	}()
	if err := b.ready(ctx); err != nil {
		b.End()
		return nil, err
	}
	return b, nil
}

func (b *Broker) properties(controller string) string {
	return strings.Join([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@" + controller,
		"listeners=PLAINTEXT://" + b.Address + ",CONTROLLER://" + controller, "advertised.listeners=PLAINTEXT://" + b.Address,
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "controller.listener.names=CONTROLLER",
		"log.dirs=" + filepath.Join(b.dir, "logs"), "auto.create.topics.enable=false",
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1", "num.network.threads=2", "num.io.threads=2",
		// The index of an active segment takes that much, for each partition.
		"log.index.size.max.bytes=65536", "log.segment.bytes=1073741824",
	}, "\n") + "\n"
}

// java returns the arguments of a program of the broker.
func java(jars string, args ...string) []string {
	return append([]string{
		"-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:ActiveProcessorCount=2",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(jars, "*"),
	}, args...)
}

// FreePorts returns addresses that no process listens at.
func FreePorts(n int) (addresses []string, err error) {
	var open []net.Listener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // does not wait
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		open, addresses = append(open, l), append(addresses, l.Addr().String())
	}
	for _, l := range open {
		_ = l.Close()
	}
	return addresses, nil
}

// ready waits until the broker makes a topic.
func (b *Broker) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		err := b.Topic("ready", nil)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-b.ended:
			return fmt.Errorf("start the broker: it ended: %s", b.log.String())
		case <-ctx.Done():
			return fmt.Errorf("wait for the broker: %w", err)
		}
	}
}

// End ends the broker.
func (b *Broker) End() {
	_ = b.cmd.Process.Kill() // it may have ended
	<-b.ended
}

// Client returns a client that reads topics and makes them.
func (b *Broker) Client() (sarama.Client, error) {
	c := sarama.NewConfig()
	c.Version, c.MetricRegistry = sarama.V3_6_0_0, &kafka.Meters{}
	c.Metadata.Retry.Max = 0
	client, err := sarama.NewClient([]string{b.Address}, c)
	if err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	return client, nil
}

// Topic makes a topic, and waits until each partition has a leader.
func (b *Broker) Topic(name string, settings map[string]*string) error {
	client, err := b.Client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return fmt.Errorf("connect to the controller: %w", err)
	}
	err = admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: Partitions, ReplicationFactor: 1, ConfigEntries: settings}, false)
	if err != nil {
		return fmt.Errorf("make topic %s: %w", name, err)
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := client.RefreshMetadata(name)
		led, e := client.WritablePartitions(name)
		switch {
		case err == nil && e == nil && len(led) == Partitions:
			return nil
		case time.Since(began) > readyLimit:
			return fmt.Errorf("wait for the leaders of topic %s: got %d; want %d", name, len(led), Partitions)
		}
	}
}

// DiskBytes returns the size of a topic's log segments.
func (b *Broker) DiskBytes(topic string) (n int64, err error) {
	files, err := filepath.Glob(filepath.Join(b.dir, "logs", topic+"-*", "*.log"))
	if err != nil || len(files) < Partitions {
		return 0, fmt.Errorf("find the segments of topic %s: got %d files; want one for each partition at least", topic, len(files))
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return 0, fmt.Errorf("measure a segment: %w", err)
		}
		n += info.Size()
	}
	return n, nil
}

// Pid returns the id of the broker's process.
func (b *Broker) Pid() int { return b.cmd.Process.Pid }
