// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/kafka"
	"github.com/lockstep-otel/lockstep/internal/offsets"
)

// session is one generation of the group. It implements sarama.ConsumerGroupHandler.
type session struct {
	*member
	client sarama.Client
	set    bool // Setup has succeeded: what is owned is of this generation
}

// Setup drops the partitions that another collector has now or had in between, and learns from where the new
// ones are read.
func (s *session) Setup(of sarama.ConsumerGroupSession) error {
	committed, err := s.committed(of.Claims())
	if err != nil {
		return err
	}
	limits, err := s.limits(committed)
	if err != nil {
		return err
	}
	anew := s.begunAnew(committed, limits)
	lost := s.owned.drop(func(p *partition) bool { return anew[p.key] || p.passedOn(committed, s.name) })
	if len(lost) > 0 {
		s.forget(lost)
	}
	for k, at := range committed {
		in := limits[k]
		switch {
		case anew[k]: // also where an offset of a former topic was committed
			committed[k] = commit{offset: in.first}
			of.MarkOffset(k.topic, k.partition, in.first, "")  // goes forward, and from nothing
			of.ResetOffset(k.topic, k.partition, in.first, "") // goes back
		case at.offset >= 0 && at.offset < in.first: // the client would go to where new groups begin, which may be the end
			of.MarkOffset(k.topic, k.partition, in.first, at.text)
		}
		s.owned.take(k, committed[k], in, s.cfg)
	}
	s.suspended.Store(false)
	if s.jobs != nil {
		s.jobs.Resume(of.Context())
	}
	if s.timeline != nil {
		s.timeline.Lead(slices.Contains(of.Claims()[s.topics[0]], 0))
	}
	s.set = true
	clear(s.anew)
	s.status.Set("group", nil)
	s.reading.Store(true)
	return nil
}

// limits returns the bounds of partitions.
func (s *session) limits(of map[key]commit) (map[key]bounds, error) {
	out := map[key]bounds{}
	for k := range of {
		var b bounds
		for at, to := range map[int64]*int64{sarama.OffsetOldest: &b.first, sarama.OffsetNewest: &b.next} {
			offset, err := s.client.GetOffset(k.topic, k.partition, at)
			if err != nil {
				return nil, fmt.Errorf("ask for the records of %s/%d: %w", k.topic, k.partition, kafka.Explain(err))
			}
			*to = offset
		}
		out[k] = b
	}
	return out, nil
}

// begunAnew returns the partitions that begin anew: those of topics that were created anew, and those that have fewer
// records than were read.
func (s *session) begunAnew(committed map[key]commit, limits map[key]bounds) map[key]bool {
	anew := map[key]bool{}
	for k, at := range committed {
		read := max(at.offset, at.marks.Next)
		if p := s.owned.get(k); p != nil {
			read = max(read, p.next())
		}
		switch {
		case s.anew[k.topic]:
			anew[k] = true
		case read > limits[k].next:
			anew[k] = true
			s.log.Error("A partition has fewer records than were read: the topic was created anew, or a broker has lost records. It is read from its beginning.",
				zap.String("topic", k.topic), zap.Int32("partition", k.partition), zap.Int64("read", read), zap.Int64("records", limits[k].next))
		}
	}
	return anew
}

// committed returns the offset that the group has committed for each of some partitions, with its marks.
func (s *session) committed(claims map[string][]int32) (map[key]commit, error) {
	admin, err := sarama.NewClusterAdminFromClient(s.client) // is not closed: that would close the client
	if err != nil {
		return nil, fmt.Errorf("ask for committed offsets of group %q: %w", s.cfg.GroupID, kafka.Explain(err))
	}
	answer, err := admin.ListConsumerGroupOffsets(s.cfg.GroupID, claims)
	if err == nil && !errors.Is(answer.Err, sarama.ErrNoError) {
		err = answer.Err
	}
	if err != nil {
		return nil, fmt.Errorf("ask for committed offsets of group %q: %w", s.cfg.GroupID, kafka.Explain(err))
	}
	out := map[key]commit{}
	for topic, partitions := range claims {
		for _, p := range partitions {
			at := commit{offset: -1}
			if b := answer.GetBlock(topic, p); b != nil {
				if !errors.Is(b.Err, sarama.ErrNoError) {
					return nil, fmt.Errorf("ask for the committed offset of %s/%d: %w", topic, p, kafka.Explain(b.Err))
				}
				at.offset, at.text = b.Offset, b.Metadata
				if at.marks, err = offsets.ParseMarks(b.Metadata); err != nil {
					s.log.Warn("What was committed beside an offset is not used: steps that were concluded may be concluded again, in part.",
						zap.String("topic", topic), zap.Int32("partition", p), zap.Error(err))
				}
			}
			out[key{topic, p}] = at
		}
	}
	return out, nil
}

// forgetLimit is how long analyses may take to drop jobs, or to suspend. A generation that ends meanwhile changes
// nothing of it; the end of the collector does.
const forgetLimit = 20 * time.Second

// forget has analyses drop the jobs of lost partitions.
func (s *session) forget(lost []*partition) {
	ctx, cancel := context.WithTimeout(s.limit, forgetLimit)
	defer cancel()
	s.meter.ReceiverJobKafkaPartitionsLost.Add(ctx, int64(len(lost)))
	ids := s.owned.jobsOnlyOf(lost, s.cfg.Traces.Topic)
	s.log.Info("Partitions go to another collector.", zap.Int("partitions", len(lost)), zap.Strings("jobs", ids))
	if s.jobs != nil && len(ids) > 0 {
		s.jobs.Release(ctx, ids)
	}
}

// Cleanup marks up to where records are not needed any more; the offsets are committed after it. Until the next
// generation, what is open is not concluded: another collector may have it by then.
func (s *session) Cleanup(of sarama.ConsumerGroupSession) error {
	if s.timeline != nil {
		s.timeline.Lead(false)
	}
	if !s.set {
		return nil
	}
	s.reading.Store(false)
	if s.suspended.Load() {
		return nil // since brokers are silent: what was marked before holds
	}
	s.suspend()
	for topic, partitions := range of.Claims() {
		for _, p := range partitions {
			if o := s.owned.get(key{topic, p}); o != nil {
				s.mark(of, o)
			}
		}
	}
	return nil
}

// ConsumeClaim reads one partition until the generation ends.
func (s *session) ConsumeClaim(of sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	p := s.owned.get(key{claim.Topic(), claim.Partition()})
	p.reads(claim)
	ctx, cancel := lingering(of.Context(), s.limit)
	defer cancel()
	ticker := time.NewTicker(s.cfg.CommitInterval)
	defer ticker.Stop()
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			if err := s.check(p, claim); err != nil {
				return err
			}
			batch := gather(m, claim.Messages(), s.cfg.BatchBytes)
			if err := s.use(ctx, p, batch); err != nil {
				if of.Context().Err() != nil {
					return nil // what was not taken is read again
				}
				return err
			}
		case <-ticker.C:
			s.mark(of, p)
		case <-of.Context().Done():
			return nil
		}
	}
}

// check ends a generation where a partition has fewer records than were read. Another one begins it anew.
func (s *session) check(p *partition, claim sarama.ConsumerGroupClaim) error {
	if end := claim.HighWaterMarkOffset(); end <= 0 || !p.cut(end) {
		return nil
	}
	next, err := s.client.GetOffset(p.topic, p.partition, sarama.OffsetNewest) // what came with a record may be old
	if err != nil {
		return fmt.Errorf("ask for the records of %s/%d: %w", p.topic, p.partition, kafka.Explain(err))
	}
	if p.cut(next) {
		return fmt.Errorf("read %s/%d: got %d records; want the %d that were read, at least", p.topic, p.partition, next, p.next())
	}
	return nil
}

// linger is how long what the next component does may outlast a generation: what it has used by then is not read
// again.
const linger = deliver.ShutdownLimit

// lingering returns a context that is done some time after another, and with a limit.
func lingering(of, limit context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(limit)
	stop := context.AfterFunc(of, func() {
		if deliver.Sleep(ctx, linger) {
			cancel()
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// gather returns a record and those that have come already, up to about some bytes.
func gather(first *sarama.ConsumerMessage, more <-chan *sarama.ConsumerMessage, limit int) []*sarama.ConsumerMessage {
	batch, size := []*sarama.ConsumerMessage{first}, len(first.Value)
	for size < limit {
		select {
		case m, ok := <-more:
			if !ok {
				return batch
			}
			batch, size = append(batch, m), size+len(m.Value)
		default:
			return batch
		}
	}
	return batch
}

// mark notes the offset that is committed next: that of the first record which is needed after a kill.
func (s *session) mark(of sarama.ConsumerGroupSession, p *partition) {
	if s.suspended.Load() {
		return // time goes on, and what is open is not concluded
	}
	floor, text, left, changed := p.floor(s.name, time.Now())
	if !changed {
		return
	}
	if p.warn(left) {
		s.log.Warn("A partition has more jobs than an offset has room for: after a kill, parts of their concluded steps are read again.",
			zap.String("topic", p.topic), zap.Int32("partition", p.partition), zap.Int("jobs", left))
	}
	of.MarkOffset(p.topic, p.partition, floor, text)
	of.ResetOffset(p.topic, p.partition, floor, text) // MarkOffset leaves the text where the offset is the same
}
