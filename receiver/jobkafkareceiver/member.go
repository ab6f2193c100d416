// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/jobs"
	"github.com/lockstep-otel/lockstep/internal/component/kafka"
	"github.com/lockstep-otel/lockstep/internal/timeline"
	"github.com/lockstep-otel/lockstep/receiver/jobkafkareceiver/internal/metadata"
)

// member is this collector in a consumer group.
type member struct {
	cfg      *Config
	log      *zap.Logger
	meter    *metadata.TelemetryBuilder
	status   health.Status
	receiver *deliver.Receiver
	traces   *deliver.Sender[ptrace.Traces]
	logs     *deliver.Sender[plog.Logs]
	topics   []string
	shown    atomic.Pointer[[]string] // topics that metrics name, once started
	jobs     jobs.Service             // nil: there is no such extension
	timeline *timeline.Timeline       // nil: there is none

	mu      sync.Mutex // guards how many instances there are, and what they have begun
	made    int
	started int
	stopped bool
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing is read any more; nil: nothing was

	limit context.Context    //nolint:containedctx // done when what is under way ends at once
	stop  context.CancelFunc // of limit

	reading   atomic.Bool // a generation is being read
	suspended atomic.Bool // since brokers are silent, until the next generation

	name   string // of this process, in what it commits
	dialer *kafka.Dialer
	meters kafka.Meters
	owned  owned

	// What follows belongs to run.
	read map[string]topic // topics that were read, by name
	anew map[string]bool  // those that were created anew, until they are read from their beginning
}

func newMember(cfg *Config, set receiver.Settings) (*member, error) {
	meter, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("make counters: %w", err)
	}
	r, err := deliver.NewReceiver(set, deliver.ReceiverConfig{Transport: "kafka", Format: "otlp_proto", Retry: cfg.Retry, Retried: meter.ReceiverJobKafkaRetries.Add})
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it is
	}
	limit, stop := context.WithCancel(context.Background())
	m := &member{
		limit: limit, stop: stop, name: strconv.FormatUint(rand.Uint64(), 36), cfg: cfg, log: set.Logger, meter: meter, receiver: r, dialer: kafka.NewDialer(cfg.DialTimeout),
		read: map[string]topic{}, anew: map[string]bool{},
	}
	return m, m.observe()
}

// counts are those of what the next component refuses: it stays in Kafka, unless it was refused for good.
func (m *member) counts(what string) *deliver.Counts {
	return &deliver.Counts{
		What: what, Dropped: m.meter.ReceiverJobKafkaItemsDropped.Add, LogEvery: deliver.RepeatEvery,
		Keeps: func(err error) bool { return !deliver.IsPermanent(err) },
	}
}

func (m *member) toTraces(next consumer.Traces) {
	m.made++
	m.traces = m.receiver.Traces(next, m.counts("Spans"))
	m.topics = append(m.topics, m.cfg.Traces.Topic)
}

func (m *member) toLogs(next consumer.Logs) {
	m.made++
	m.logs = m.receiver.Logs(next, m.counts("Log records"))
	m.topics = append(m.topics, m.cfg.Logs.Topic)
}

// start begins to read once all instances have started.
func (m *member) start(host component.Host) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started++; m.started < m.made {
		return nil
	}
	m.status.Start(host)
	m.shown.Store(&m.topics)
	if m.cfg.JobsID != nil {
		service, err := jobs.Find(host, *m.cfg.JobsID)
		if err != nil {
			return err //nolint:wrapcheck // says what it is
		}
		m.jobs = service
	}
	if err := m.findTimeline(host); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel, m.done = cancel, make(chan struct{})
	go m.run(ctx)
	return nil
}

// brokerPatience is how long the end waits for brokers: half of what a component has.
const brokerPatience = deliver.ShutdownLimit / 2

// shutdown stops reading with the first instance that stops. What is open is read again after the start, so
// that the analyses do not conclude it.
func (m *member) shutdown(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped || m.done == nil {
		return nil
	}
	m.stopped = true
	_, stopped := m.receiver.Stop(ctx)
	if m.jobs != nil { // what comes from now on is read again as well
		limited, cancel := context.WithTimeout(ctx, brokerPatience)
		m.jobs.Suspend(limited)
		cancel()
	}
	m.cancel()
	silent := time.AfterFunc(brokerPatience, m.end)
	<-m.done
	silent.Stop()
	m.stop()
	m.meter.Shutdown()
	return stopped()
}

// end has what is under way end at once.
func (m *member) end() {
	m.stop()
	m.dialer.End()
}

// run is a member of the group until ctx is done.
func (m *member) run(ctx context.Context) {
	defer close(m.done)
	defer m.dialer.End()
	m.awaitClocks(ctx)
	waits := deliver.NewBackoff(&configretry.BackOffConfig{InitialInterval: time.Second, RandomizationFactor: 0.5, Multiplier: 1.5, MaxInterval: 15 * time.Second})
	for ctx.Err() == nil {
		began := time.Now()
		err := m.join(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue // the topics have changed
		}
		m.status.Set("group", err)
		m.log.Warn("Kafka cannot be read, and is tried again.", zap.Error(err))
		if time.Since(began) > time.Minute {
			waits.Reset()
		}
		deliver.Sleep(ctx, waits.Next())
	}
}

// join reads as a member of the group until an error, or until ctx is done.
func (m *member) join(ctx context.Context) error {
	s, err := m.cfg.ClientConfig.Sarama(ctx, m.dialer, &m.meters)
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	m.cfg.sarama(s)
	client, err := sarama.NewClient(m.cfg.Brokers, s)
	if err != nil {
		return fmt.Errorf("prepare a client of the brokers %v: %w", m.cfg.Brokers, err)
	}
	defer func() { _ = client.Close() }()
	found, err := m.checkTopics(client)
	if err != nil {
		return err
	}
	m.notice(found)
	for _, topic := range m.topics {
		m.checkPolicy(client, topic)
	}
	if m.cfg.Read == readAll {
		return m.readAll(ctx, client, found)
	}
	// A member of a name that joins a group again changes nothing, unless what it says of itself has changed.
	s.Consumer.Group.Member.UserData = []byte(fmt.Sprint(found))
	group, err := sarama.NewConsumerGroupFromClient(m.cfg.GroupID, client)
	if err != nil {
		return fmt.Errorf("join group %q: %w", m.cfg.GroupID, kafka.Explain(err))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var beside, guards sync.WaitGroup
	over := make(chan struct{})
	guards.Go(func() { m.guard(over, cancel) })
	defer guards.Wait()
	defer close(over)
	beside.Go(func() { m.report(group.Errors()) })
	beside.Go(func() { m.watch(ctx, cancel, client, found) })
	defer beside.Wait()
	defer func() { _ = group.Close() }()
	defer cancel(nil)
	for ctx.Err() == nil {
		if err := group.Consume(ctx, m.topics, &session{member: m, client: client}); err != nil {
			return fmt.Errorf("read as a member of group %q: %w", m.cfg.GroupID, kafka.Explain(err))
		}
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err //nolint:wrapcheck // says what it is
	}
	return nil
}

// reportEvery is how often errors of reading are logged: a broker that is away makes some each second.
const reportEvery = 10 * time.Second

// report logs the errors of a group, the first of some seconds with the number of those that were not logged.
func (m *member) report(errs <-chan error) {
	var last time.Time
	silent := 0
	for err := range errs {
		if now := time.Now(); now.Sub(last) >= reportEvery {
			m.log.Warn("Reading from Kafka fails.", zap.Int("errors_before", silent), zap.Error(kafka.Explain(err)))
			last, silent = now, 0
			continue
		}
		silent++
	}
}

const (
	// heartbeat is Kafka's default: members learn of a rebalance by it.
	heartbeat = 3 * time.Second
	// leastRebalance is how long the members of a group have at least to join again.
	leastRebalance = 30 * time.Second
)

// sarama fills in how the group is read.
func (c *Config) sarama(s *sarama.Config) {
	g := &s.Consumer.Group
	g.InstanceId, g.Session.Timeout = c.GroupInstanceID, c.SessionTimeout
	g.Heartbeat.Interval = min(c.SessionTimeout/3, heartbeat)
	// The broker answers who joins when all have joined, or when those that have not are given up.
	g.Rebalance.Timeout = max(c.SessionTimeout, leastRebalance)
	s.Net.ReadTimeout = g.Rebalance.Timeout + kafka.RequestTimeout
	// Partitions with one number of the two topics go to one collector.
	g.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	s.Consumer.Return.Errors = true
	s.Consumer.Offsets.AutoCommit.Interval = c.CommitInterval
	s.Consumer.Offsets.Initial = sarama.OffsetOldest
	if c.InitialOffset == latest {
		s.Consumer.Offsets.Initial = sarama.OffsetNewest
	}
	// What waits for the next component is bounded: a few records of each partition.
	s.ChannelBufferSize = 8
}
