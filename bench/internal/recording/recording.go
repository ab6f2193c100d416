// SPDX-License-Identifier: Apache-2.0

package recording

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

// Recording is what the agents of a job have sent, in a file: the simulator takes no memory while others
// are measured. A request is OTLP in zstd.
type Recording struct {
	file *os.File

	Ranks, Steps int
	Count, Spans int   // of requests, and of the spans in them
	Raw, Packed  int64 // bytes of all requests, before and after compression
	From, Until  int64 // true time of the job, Unix ns
}

// Options say what is recorded.
type Options struct {
	Ranks  int    // a multiple of PerNode
	Steps  int    // of the job
	Batch  int    // steps of a node in one request
	Layout string // how the job is divided: experts, sharded or tensor
	Dir    string // folder for the file, which is removed again
}

// window is the length of zstd's window as the exporter's client sets it, bytes.
const window = 512 << 10

// New simulates a job and writes what its agents send: some steps of a node in one request, and the
// nodes in another order each time.
func New(o Options) (_ *Recording, err error) {
	if o.Batch < 1 {
		return nil, fmt.Errorf("make requests: got %d steps in one; want at least 1", o.Batch)
	}
	job, err := newJob(o.Ranks, o.Steps, o.Layout)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(o.Dir, "recording-")
	if err != nil {
		return nil, fmt.Errorf("write requests: %w", err)
	}
	r := &Recording{file: file, Ranks: o.Ranks, Steps: job.Steps()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write requests: %w", err), r.Close())
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
		Recording: r, to: bufio.NewWriter(file), encoder: encoder,
		order: rand.New(rand.NewPCG(seed, 0)), held: make([]ptrace.Traces, o.Ranks/PerNode),
	}
	for step, ok := job.Next(); ok; step, ok = job.Next() {
		done := step.N + 1
		if err := w.step(job, step, done%int64(o.Batch) == 0 || done == int64(r.Steps)); err != nil {
			return nil, err
		}
	}
	return r, w.to.Flush()
}

// writer writes requests.
type writer struct {
	*Recording
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
		for i := node * PerNode; i < (node+1)*PerNode; i++ {
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
	node := int(rank.Rank) / PerNode
	rank.ClockID = ClockID(node, Realtime)
	mark := len(ops) - 1 // the span of the step, which begins and ends with it
	if w.From == 0 {
		w.From = begin()
		w.stamps.shift = w.From - ops[mark].Start
	}
	w.stamps.stamp(node, ops)
	w.Until = max(w.Until, ops[mark].End)
	otelmap.AppendOps(td, &rank, ops)
	w.Spans += len(ops)
}

func (w *writer) write(td ptrace.Traces) error {
	data, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return err
	}
	w.packet = w.encoder.EncodeAll(data, w.packet[:0])
	w.Count++
	w.Raw += int64(len(data))
	w.Packed += int64(len(w.packet))
	var size [4]byte
	binary.LittleEndian.PutUint32(size[:], uint32(len(w.packet)))
	if _, err := w.to.Write(size[:]); err != nil {
		return err
	}
	_, err = w.to.Write(w.packet)
	return err
}

// Each calls do with each request; the slice is valid until it returns.
func (r *Recording) Each(do func([]byte) error) error {
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read requests: %w", err)
	}
	from := bufio.NewReader(r.file)
	var size [4]byte
	var packet []byte
	for range r.Count {
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

// Close removes the file.
func (r *Recording) Close() error { return r.file.Close() }
