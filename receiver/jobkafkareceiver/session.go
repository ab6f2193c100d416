// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"
	"fmt"
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
	if err := s.beginAnew(of, committed); err != nil {
		return err
	}
	if lost := s.owned.keepOnly(committed, s.name); len(lost) > 0 {
		s.forget(lost)
	}
	for key, at := range committed {
		s.owned.take(key, at, s.cfg)
		if err := s.skipDeleted(of, key, at); err != nil {
			return err
		}
	}
	if s.jobs != nil {
		s.jobs.Resume(of.Context())
	}
	s.set = true
	clear(s.anew)
	s.status.Set("group", nil)
	return nil
}

// skipDeleted begins a partition with its first record, where the topic has deleted the one that is committed: the
// client would go to where new groups begin, which may be the end.
func (s *session) skipDeleted(of sarama.ConsumerGroupSession, k key, at commit) error {
	if at.offset < 0 {
		return nil
	}
	oldest, err := s.oldest(k)
	if err == nil && at.offset < oldest {
		of.MarkOffset(k.topic, k.partition, oldest, "")
	}
	return err
}

// oldest returns the number of the first record of a partition.
func (s *session) oldest(k key) (int64, error) {
	oldest, err := s.client.GetOffset(k.topic, k.partition, sarama.OffsetOldest)
	if err != nil {
		return 0, fmt.Errorf("ask for the first record of %s/%d: %w", k.topic, k.partition, kafka.Explain(err))
	}
	return oldest, nil
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
				at.offset = b.Offset
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

// forgetLimit is how long analyses may take to drop jobs. A generation that ends meanwhile changes nothing of it.
const forgetLimit = 20 * time.Second

// forget has analyses drop the jobs of lost partitions.
func (s *session) forget(lost []*partition) {
	ctx, cancel := context.WithTimeout(context.Background(), forgetLimit)
	defer cancel()
	s.meter.ReceiverJobKafkaPartitionsLost.Add(ctx, int64(len(lost)))
	ids := s.owned.jobsOnlyOf(lost)
	s.log.Info("Partitions go to another collector.", zap.Int("partitions", len(lost)), zap.Strings("jobs", ids))
	if s.jobs != nil && len(ids) > 0 {
		s.jobs.Release(ctx, ids)
	}
}

// Cleanup marks up to where records are not needed any more; the offsets are committed after it. Until the next
// generation, what is open is not concluded: another collector may have it by then.
func (s *session) Cleanup(of sarama.ConsumerGroupSession) error {
	if !s.set {
		return nil
	}
	if s.jobs != nil {
		ctx, cancel := context.WithTimeout(context.Background(), forgetLimit)
		defer cancel()
		s.jobs.Suspend(ctx)
	}
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
	p.claim.Store(&claim)
	ctx, cancel := lingering(of.Context())
	defer cancel()
	ticker := time.NewTicker(s.cfg.CommitInterval)
	defer ticker.Stop()
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			if p.shrunk(claim.HighWaterMarkOffset()) {
				p = s.begunAnew(p, claim)
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

// linger is how long what the next component does may outlast a generation: what it has used by then is not read
// again.
const linger = deliver.ShutdownLimit

// lingering returns a context that is done some time after another.
func lingering(of context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(of))
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

// begunAnew forgets a partition of which fewer records are there than were read, and returns it as a new one.
func (s *session) begunAnew(p *partition, claim sarama.ConsumerGroupClaim) *partition {
	s.log.Error("A partition has fewer records than were read: the topic was created anew, or a broker has lost records. It is read from its beginning.",
		zap.String("topic", p.topic), zap.Int32("partition", p.partition), zap.Int64("read", p.next()), zap.Int64("records", claim.HighWaterMarkOffset()))
	s.owned.drop(p.key)
	s.forget([]*partition{p})
	s.owned.take(p.key, commit{offset: -1}, s.cfg)
	next := s.owned.get(p.key)
	next.claim.Store(&claim)
	return next
}

// mark notes the offset that is committed next: that of the first record which is needed after a kill.
func (s *session) mark(of sarama.ConsumerGroupSession, p *partition) {
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
