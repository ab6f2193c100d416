// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

// all is one reading of all partitions.
type all struct {
	*member
	client   sarama.Client
	consumer sarama.Consumer
	behind   atomic.Int64 // partitions of which something that was there at the beginning was not read yet
}

// caughtUp notes that a partition has been read to where it ended at the beginning.
func (a *all) caughtUp() {
	if a.behind.Add(-1) == 0 && a.timeline != nil {
		a.timeline.CaughtUp()
	}
}

// allReader reads one partition.
type allReader struct {
	*all
	*partition
	from, until int64 // the next record, and where the partition ended at the beginning
	behind      bool  // something before until was not read yet
	doubt       bool  // whether it can be read is not known
	last        time.Time
}

func (r *allReader) part() string { return fmt.Sprintf("%s/%d", r.topic, r.key.partition) }

// readOne reads a partition until an error, or until ctx is done.
func (a *all) readOne(ctx context.Context, k key, in bounds) error {
	p := a.owned.get(k)
	r := &allReader{all: a, partition: p, from: max(in.first, p.next()), until: in.next, behind: true, doubt: true, last: time.Now()}
	pc, err := a.consumer.ConsumePartition(k.topic, k.partition, r.from)
	if err != nil {
		return fmt.Errorf("read %s from offset %d: %w", r.part(), r.from, kafka.Explain(err))
	}
	var reports sync.WaitGroup
	errs := make(chan error)
	reports.Go(func() { a.report(errs) })
	defer reports.Wait()
	defer close(errs)
	defer func() { _ = pc.Close() }()
	defer a.status.Set(r.part(), nil)
	p.reads(pc)
	return r.run(ctx, pc, errs)
}

func (r *allReader) run(ctx context.Context, pc sarama.PartitionConsumer, errs chan<- error) error {
	ticker := time.NewTicker(quiet / 4)
	defer ticker.Stop()
	for {
		r.reached(r.from >= r.until)
		select {
		case message, ok := <-pc.Messages():
			if !ok {
				return fmt.Errorf("read %s from offset %d: got an end; want further records", r.part(), r.from)
			}
			batch := gather(message, pc.Messages(), r.cfg.BatchBytes)
			if err := r.use(ctx, r.partition, batch); err != nil {
				return err
			}
			r.from, r.last = batch[len(batch)-1].Offset+1, time.Now()
			r.known(nil)
		case err := <-pc.Errors():
			if err != nil {
				errs <- err
				r.known(err)
			}
		case <-ticker.C:
			r.floor(r.name, time.Now()) // nothing is held
			if r.doubt && time.Since(r.last) > quiet {
				end, err := r.ended()
				r.reached(end)
				if end || err != nil {
					r.known(err)
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// reached notes whether all was read that was there at the beginning.
func (r *allReader) reached(end bool) {
	if r.behind && end {
		r.behind = false
		r.caughtUp()
	}
}

// known notes whether the partition can be read.
func (r *allReader) known(err error) {
	r.doubt = err != nil || r.behind
	if err != nil {
		err = fmt.Errorf("read %s: %w", r.part(), kafka.Explain(err))
	}
	r.status.Set(r.part(), err)
}

const (
	// fetchVersion is that of Kafka 2.3, which is the least that is accepted.
	fetchVersion = 11
	// fetchBytes has room for a record, and for many batches whose records compaction has removed.
	fetchBytes = 1 << 20
)

// ended asks the broker whether there is no record from the next one on. That of the last offset may have been removed
// by compaction, or be no data. The client itself says nothing of a fetch without records.
func (r *allReader) ended() (bool, error) {
	for {
		block, err := r.fetch()
		if err != nil {
			return false, err
		}
		if len(block.RecordsSet) == 0 && !block.Partial {
			return block.HighWaterMarkOffset >= r.until, nil // a leader that lags has not heard of all records
		}
		if !r.skip(block) {
			return false, nil
		}
	}
}

// fetch asks for the next records.
func (r *allReader) fetch() (*sarama.FetchResponseBlock, error) {
	broker, err := r.client.Leader(r.topic, r.key.partition)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it is
	}
	request := &sarama.FetchRequest{Version: fetchVersion, MinBytes: 1, MaxBytes: fetchBytes, MaxWaitTime: 100, SessionEpoch: -1}
	request.AddBlock(r.topic, r.key.partition, r.from, fetchBytes, -1)
	answer, err := broker.Fetch(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it is
	}
	block := answer.GetBlock(r.topic, r.key.partition)
	switch {
	case block == nil:
		return nil, sarama.ErrIncompleteResponse
	case !errors.Is(block.Err, sarama.ErrNoError):
		return nil, block.Err
	}
	return block, nil
}

// skip passes records that are no data, such as the ends of transactions, and reports whether there were no others.
func (r *allReader) skip(block *sarama.FetchResponseBlock) bool {
	for _, records := range block.RecordsSet {
		if batch := records.RecordBatch; batch == nil || !batch.Control {
			return false
		}
	}
	if len(block.RecordsSet) == 0 {
		return false
	}
	r.from = block.RecordsSet[len(block.RecordsSet)-1].RecordBatch.LastOffset() + 1
	return true
}
