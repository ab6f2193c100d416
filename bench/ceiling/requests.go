// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// requests are what the agents of a job have sent, in a file: the simulator takes no memory while the
// gateway is measured.
type requests struct {
	file  *os.File
	ranks int
	steps int
	// count is how many requests there are, spans how many spans they have.
	count, spans int
	raw, packed  int64 // bytes of all requests, before and after compression
	from, until  int64 // true time of the job, Unix ns
}

// window is the length of zstd's window as the exporter's client sets it, bytes.
const window = 512 << 10

// record simulates a job and writes what its agents send: some steps of a node in one request, and the
// nodes in another order each time.
func record(o *options, ranks int) (_ *requests, err error) {
	job, err := newJob(ranks, o.stepsOf(ranks), o.layout)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(o.dir, "ceiling-")
	if err != nil {
		return nil, fmt.Errorf("write requests: %w", err)
	}
	r := &requests{file: file, ranks: ranks, steps: job.Steps()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write requests: %w", err), r.close())
		}
	}()
	if err := os.Remove(file.Name()); err != nil { // the open file stays until it is closed
		return nil, err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := &writer{
		requests: r, to: bufio.NewWriter(file), encoder: encoder,
		order: rand.New(rand.NewPCG(seed, 0)), held: make([]ptrace.Traces, ranks/perNode),
	}
	for step, ok := job.Next(); ok; step, ok = job.Next() {
		done := step.N + 1
		if err := w.step(job, step, done%int64(o.batch) == 0 || done == int64(r.steps)); err != nil {
			return nil, err
		}
	}
	return r, w.to.Flush()
}

// writer writes requests.
type writer struct {
	*requests
	to      *bufio.Writer
	encoder *zstd.Encoder
	order   *rand.Rand
	stamps  stamps
	held    []ptrace.Traces // by node, what it has not sent
	packet  []byte
}

// step records a step of all nodes, one after the other, and writes a request of each where it is due.
func (w *writer) step(job *training.Job, step *training.Step, due bool) error {
	for _, node := range w.order.Perm(len(w.held)) {
		td := w.held[node]
		if td == (ptrace.Traces{}) {
			td = ptrace.NewTraces()
		}
		for i := node * perNode; i < (node+1)*perNode; i++ {
			w.rank(td, job.Ranks()[i], step.Ops(i))
		}
		if w.held[node] = td; !due {
			continue
		}
		if err := w.write(td); err != nil {
			return err
		}
		w.held[node] = ptrace.Traces{}
	}
	return nil
}

// rank adds the operations of a rank, with the stamps of its node's clock.
func (w *writer) rank(td ptrace.Traces, rank model.Rank, ops []model.Op) {
	node := int(rank.Rank) / perNode
	rank.ClockID = clockID(node, realtime)
	mark := len(ops) - 1 // the span of the step, which begins and ends with it
	if w.from == 0 {
		w.from = begin()
		w.stamps.shift = w.from - ops[mark].Start
	}
	w.stamps.stamp(node, ops)
	w.until = max(w.until, ops[mark].End)
	otelmap.AppendOps(td, &rank, ops)
	w.spans += len(ops)
}

func (w *writer) write(td ptrace.Traces) error {
	data, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return err
	}
	w.packet = w.encoder.EncodeAll(data, w.packet[:0])
	w.count++
	w.raw += int64(len(data))
	w.packed += int64(len(w.packet))
	var size [4]byte
	binary.LittleEndian.PutUint32(size[:], uint32(len(w.packet)))
	if _, err := w.to.Write(size[:]); err != nil {
		return err
	}
	_, err = w.to.Write(w.packet)
	return err
}

// each calls do with each request; the slice is valid until it returns.
func (r *requests) each(do func([]byte) error) error {
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read requests: %w", err)
	}
	from := bufio.NewReader(r.file)
	var size [4]byte
	var packet []byte
	for range r.count {
		if _, err := io.ReadFull(from, size[:]); err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
		n := int(binary.LittleEndian.Uint32(size[:]))
		if cap(packet) < n {
			packet = make([]byte, n)
		}
		packet = packet[:n]
		if _, err := io.ReadFull(from, packet); err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
		if err := do(packet); err != nil {
			return err
		}
	}
	return nil
}

func (r *requests) close() error { return r.file.Close() }
