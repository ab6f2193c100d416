// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
	"github.com/lockstep-otel/lockstep/internal/sim/hang"
)

// scaleResult is what a part prints for who started it.
type scaleResult struct {
	Seconds float64 // from the first file to the report
	Bytes   int64
	Told    string
}

// analyze judges all files of a folder.
func analyze(ctx context.Context, dir string, stdout io.Writer) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list dumps: %w", err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, filepath.Join(dir, f.Name()))
	}
	begin := time.Now()
	var r scaleResult
	var rep *desync.Report
	if filepath.Base(dir) == "summaries" {
		rep, r.Bytes, err = fromSummaries(paths)
	} else {
		rep, r.Bytes, err = fromDumps(ctx, paths)
	}
	if err != nil {
		return err
	}
	r.Seconds = time.Since(begin).Seconds()
	r.Told = string(rep.Verdict)
	for i := range rep.Roots {
		r.Told += fmt.Sprintf(", %s rank %d", rep.Roots[i].Finding.Class, rep.Roots[i].Finding.Rank.Or(-1))
	}
	if err := json.NewEncoder(stdout).Encode(&r); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// fromDumps is what `lockstep analyze` does.
func fromDumps(ctx context.Context, paths []string) (*desync.Report, int64, error) {
	set := dumpset.Read(ctx, paths, dumpset.Options{})
	if len(set.Hangs) != 1 || set.Stats.Unreadable+set.Stats.Refused+set.Stats.Partial > 0 {
		return nil, 0, fmt.Errorf("read dumps: got %d reports, and of files %+v; want one report, and all read whole", len(set.Hangs), set.Stats)
	}
	return set.Hangs[0].Report, set.Stats.Bytes, nil
}

// fromSummaries reads what nodes sent of their ranks, and gives the states to the analyzer
// one at a time.
func fromSummaries(paths []string) (*desync.Report, int64, error) {
	a := desync.New(desync.NewDefaultConfig())
	a.SetJob(desync.Job{Name: "job", ID: "job"})
	var mu sync.Mutex
	var total int64
	todo := make(chan string)
	var wg sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for w := range errs {
		wg.Go(func() {
			var d rankstate.Decoder
			var states []model.RankState // used again: nothing of them is kept
			for path := range todo {
				var n int64
				var err error
				states, n, err = readSummary(path, &d, states)
				errs[w] = errors.Join(errs[w], err)
				mu.Lock()
				total += n
				for i := range states {
					a.Add(&states[i])
				}
				mu.Unlock()
			}
		})
	}
	for _, p := range paths {
		todo <- p
	}
	close(todo)
	wg.Wait()
	return a.Conclude(0), total, errors.Join(errs...)
}

func readState(data []byte, rank int64) (model.RankState, error) {
	d, err := flightrecorder.Decode(data, flightrecorder.DefaultOptions())
	if err != nil {
		return model.RankState{}, fmt.Errorf("read dump of rank %d: %w", rank, err)
	}
	return d.State(model.Rank{JobName: "job", JobID: "job", Rank: rank}, hang.FileName(rank), flightrecorder.StateOptions{}), nil
}

// appendSummary adds a state, its length before it.
func appendSummary(b []byte, s model.RankState) []byte {
	e := rankstate.Encode(&s)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e)))
	return append(b, e...)
}

func readSummary(path string, d *rankstate.Decoder, states []model.RankState) ([]model.RankState, int64, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the files are our own
	if err != nil {
		return nil, 0, fmt.Errorf("read summary: %w", err)
	}
	n := int64(len(data))
	out := states[:0]
	for len(data) > 4 {
		length := int(binary.LittleEndian.Uint32(data))
		if out = slices.Grow(out, 1)[:len(out)+1]; len(data) < 4+length {
			return nil, n, fmt.Errorf("read summary: got %d bytes; want %d", len(data)-4, length)
		}
		if err := d.DecodeTo(data[4:4+length], &out[len(out)-1]); err != nil {
			return nil, n, fmt.Errorf("read summary: %w", err)
		}
		data = data[4+length:]
	}
	return out, n, nil
}

// decodes measures how fast one core decodes dumps that are in memory.
func decodes(dir string, stdout io.Writer) error {
	const many = 64 // files, some 20 MB: far more than a cache holds
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list dumps: %w", err)
	}
	var dumps [][]byte
	var bytes int64
	for _, f := range files[:min(many, len(files))] {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return fmt.Errorf("read dump: %w", err)
		}
		dumps = append(dumps, data)
		bytes += int64(len(data))
	}
	var out []string
	for _, stacks := range []bool{false, true} {
		o := flightrecorder.DefaultOptions()
		o.Stacks = stacks
		begin, rounds := processTime(), 0
		for processTime()-begin < time.Second {
			for _, data := range dumps {
				if _, err := flightrecorder.Decode(data, o); err != nil {
					return fmt.Errorf("decode dump: %w", err)
				}
			}
			rounds++
		}
		rate := float64(bytes) * float64(rounds) / 1e6 / (processTime() - begin).Seconds()
		out = append(out, fmt.Sprintf("%.0f MB/s with stacks %v", rate, stacks))
	}
	fmt.Fprintf(stdout, "\nDecoding dumps of %d KB each, per second of processor time: %s\n", bytes/int64(len(dumps))/1000, strings.Join(out, ", "))
	return nil
}
