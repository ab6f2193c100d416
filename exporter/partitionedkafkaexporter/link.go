// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

// errEnded is why nothing is sent through a link any more.
var errEnded = errors.New("the producer has ended")

// idTries is how often the brokers are asked for the id of a producer: they take some seconds to load it after a
// start, and what takes longer is for the sending queue.
const idTries = 5

// link is one producer, with its connections. It is idempotent: what it sends again after an error is written
// once. What is sent again through another link may be written twice.
type link struct {
	client sarama.Client
	async  sarama.AsyncProducer
	dialer *kafka.Dialer

	aborted chan struct{} // closed: nothing waits for the brokers any more
	ended   chan struct{} // closed: the producer has ended
	closing sync.Once
	senders sync.WaitGroup
	load    load

	mu     sync.Mutex // of the next, and of what begins with senders
	closed bool       // nothing new is sent
	over   bool       // aborted is closed
}

// newLink connects, and asks the brokers for the id of an idempotent producer.
func newLink(ctx context.Context, c *Config, topic string, limit int, meters *kafka.Meters) (*link, error) {
	l := &link{dialer: kafka.NewDialer(c.DialTimeout), aborted: make(chan struct{}), ended: make(chan struct{})}
	inTime := context.AfterFunc(ctx, l.abort)
	if err := l.connect(ctx, c, topic, limit, meters); err != nil {
		inTime()
		if errors.Is(ctx.Err(), context.Canceled) { // err is of connections that were ended for it
			err = fmt.Errorf("connect to the brokers %v: %w", c.Brokers, context.Cause(ctx))
		}
		return nil, err
	}
	go l.answers()
	if !inTime() {
		l.close()
		return nil, fmt.Errorf("connect to the brokers %v: %w", c.Brokers, context.Cause(ctx))
	}
	return l, nil
}

func (l *link) connect(ctx context.Context, c *Config, topic string, limit int, meters *kafka.Meters) error {
	s, err := c.ClientConfig.Sarama(ctx, l.dialer, meters)
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	c.Producer.sarama(s, limit < c.Producer.MaxMessageBytes, l.backoff)
	s.Metadata.Retry.BackoffFunc = l.backoff
	s.Producer.Transaction.Retry.Max, s.Producer.Transaction.Retry.BackoffFunc = idTries, l.backoff
	if l.client, err = sarama.NewClient(c.Brokers, s); err != nil {
		return fmt.Errorf("prepare a client of the brokers %v: %w", c.Brokers, err)
	}
	switch err = l.client.RefreshMetadata(topic); {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		err = fmt.Errorf("find topic %q: %w", topic, kafka.ExplainConnect(err))
	case err != nil:
		err = fmt.Errorf("connect to the brokers %v: %w", c.Brokers, kafka.ExplainConnect(err))
	default:
		if l.async, err = sarama.NewAsyncProducerFromClient(l.client); err != nil {
			err = fmt.Errorf("get the id of a producer from the brokers %v: %w", c.Brokers, kafka.ExplainConnect(err))
		}
	}
	if err != nil {
		_ = l.client.Close() // after the error that counts
	}
	return err
}

// backoff is how long the client waits before it tries again: from 0.1 s to 2 s, and not at all at the end.
func (l *link) backoff(retries, _ int) time.Duration {
	const first, most = 100 * time.Millisecond, 2 * time.Second
	select {
	case <-l.aborted:
		return 0
	default:
		return min(most, first<<min(retries, 10))
	}
}

// partitions returns how many partitions a topic has.
func (l *link) partitions(topic string) (int32, error) {
	all, err := l.client.Partitions(topic)
	if err == nil && len(all) == 0 {
		err = sarama.ErrUnknownTopicOrPartition
	}
	if err != nil {
		return 0, fmt.Errorf("find topic %q: %w", topic, kafka.Explain(err))
	}
	return int32(len(all)), nil
}

// look asks a broker for a topic.
func (l *link) look(topic string) error {
	if err := l.client.RefreshMetadata(topic); err != nil {
		return fmt.Errorf("find topic %q: %w", topic, kafka.Explain(err))
	}
	return nil
}

// call is the answers to the messages of one send.
type call struct {
	load   *load
	mu     sync.Mutex
	left   int
	errs   []error // of each message; nil: acknowledged
	closed bool
	done   chan struct{}
}

// slot is one message of a call.
type slot struct {
	call      *call
	at, bytes int
}

func (s slot) answer(err error) {
	s.call.mu.Lock()
	defer s.call.mu.Unlock()
	if s.call.closed {
		s.call.load.answered(s.bytes)
		return
	}
	s.call.load.answered(0)
	s.call.errs[s.at] = err
	if s.call.left--; s.call.left == 0 {
		close(s.call.done)
	}
}

// send sends messages, and returns the error of each: nil where all replicas have it. When ctx is done, it leaves
// what is not answered until then to the link, which may write it nevertheless: other callers wait for theirs.
func (l *link) send(ctx context.Context, messages []*sarama.ProducerMessage) []error {
	c := &call{load: &l.load, left: len(messages), errs: make([]error, len(messages)), done: make(chan struct{})}
	for i := range c.errs {
		c.errs[i] = errEnded
	}
	pushed := 0
	if l.load.wait(ctx, l.aborted) && l.begin() {
		pushed = l.push(ctx, c, messages)
		l.senders.Done()
	}
	select {
	case <-c.done:
	case <-l.aborted:
	case <-ctx.Done():
	}
	return c.close(ctx, messages[:pushed])
}

// close returns the answers that there are, and leaves the messages that have none.
func (c *call) close(ctx context.Context, pushed []*sarama.ProducerMessage) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	bytes := 0
	for i, err := range c.errs {
		if !errors.Is(err, errEnded) {
			continue
		}
		if i < len(pushed) {
			bytes += sizeOf(pushed[i])
		}
		if ctx.Err() != nil {
			c.errs[i] = fmt.Errorf("wait for the brokers: %w", context.Cause(ctx))
		}
	}
	c.load.leave(bytes)
	return c.errs
}

// sizeOf returns the bytes of a message, but for its headers.
func sizeOf(m *sarama.ProducerMessage) int {
	n := m.Value.Length()
	if m.Key != nil {
		n += m.Key.Length()
	}
	return n
}

func (l *link) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.over {
		return false
	}
	l.senders.Add(1)
	return true
}

// push gives messages to the producer, and returns how many it took.
func (l *link) push(ctx context.Context, c *call, messages []*sarama.ProducerMessage) int {
	for i, m := range messages {
		m.Metadata = slot{c, i, sizeOf(m)}
		select {
		case l.async.Input() <- m:
			l.load.sent()
		case <-l.aborted:
			return i
		case <-ctx.Done():
			return i
		}
	}
	return len(messages)
}

// answers gives each answer to the call of its message, until the producer has ended.
func (l *link) answers() {
	defer close(l.ended)
	var both sync.WaitGroup
	both.Go(func() {
		for m := range l.async.Successes() {
			m.Metadata.(slot).answer(nil)
		}
	})
	both.Go(func() {
		for e := range l.async.Errors() {
			e.Msg.Metadata.(slot).answer(e.Err)
		}
	})
	both.Wait()
	_ = l.client.Close() // ends the connections, of which nothing is left to know
}

// abort ends all connections, and makes whatever waits for them return.
func (l *link) abort() {
	l.dialer.End()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		close(l.aborted)
	}
}

// closePatience is how long a link that is closed waits for answers: longer than a broker takes, and than the client
// waits between its attempts.
const closePatience = 5 * time.Second

// close ends the link once what is under way was answered, or after closePatience, and does not wait for it.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.closing.Do(func() {
		go func() {
			l.senders.Wait() // a closed producer panics at a message
			l.async.AsyncClose()
			late := time.AfterFunc(closePatience, l.abort)
			<-l.ended
			late.Stop()
		}()
	})
}

func (l *link) hasEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// end waits for the end of a link that is closed. Where a broker does not answer until ctx is done, it ends the
// connections.
func (l *link) end(ctx context.Context) {
	select {
	case <-l.ended:
	case <-ctx.Done():
		l.abort()
		<-l.ended
	}
}
