// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strings"

	"github.com/lockstep-otel/lockstep/bench/internal/broker"
)

// options are the flags.
type options struct {
	jars, profiles string
	steps, rounds  int
	own            []string
	largest        bool
}

func main() {
	var o options
	flag.StringVar(&o.jars, "jars", "../../bin/kafka", "folder with the jars of the broker, which make bin/kafka makes")
	flag.StringVar(&o.profiles, "profiles", "", "folder into which a CPU profile of each exporter is written, of a further round")
	flag.IntVar(&o.steps, "steps", 20, "steps of each job, a multiple of 5")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each exporter sends all requests, in turn")
	flag.BoolVar(&o.largest, "largest", true, "search the largest step that goes through")
	flag.Func("own", "a column of ours with settings KEY=VALUE, separated by commas; may be repeated (without: partition_by=job)", func(s string) error {
		o.own = append(o.own, s)
		return nil
	})
	flag.Parse()
	if len(o.own) == 0 {
		o.own = []string{"partition_by=job"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx)
	stop()
	if err != nil {
		progress("%v", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// variants returns the exporters that are compared: ours and the stock one first.
func (o *options) variants() ([]variant, error) {
	first, err := ours("ours", "")
	all := []variant{first, stock("stock", nil)}
	for _, settings := range o.own {
		v, e := ours("ours "+settings, settings)
		all, err = append(all, v), errors.Join(err, e)
	}
	return all, err
}

func (o *options) run(ctx context.Context) error {
	if o.steps < stepsPerRequest || o.steps%stepsPerRequest != 0 || o.rounds < 1 {
		return fmt.Errorf("check flags: got -steps %d -rounds %d; want a multiple of %d, and one round at least", o.steps, o.rounds, stepsPerRequest)
	}
	variants, err := o.variants()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lockstep-bench-kafka-")
	if err != nil {
		return fmt.Errorf("make a folder for the broker: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	progress("start a broker")
	b, err := broker.Start(ctx, o.jars, dir)
	if err != nil {
		return err
	}
	defer b.End()
	progress("simulate %d steps of %d jobs", o.steps, len(layouts))
	w, err := newWorld(o.steps)
	if err != nil {
		return err
	}
	rows, err := o.rows(ctx, b, w, variants)
	if err != nil {
		return err
	}
	var results []searched
	if o.largest {
		if results, err = o.search(ctx, b, variants); err != nil {
			return err
		}
	}
	o.write(os.Stdout, w, rows, results)
	return nil
}

// rows measures all variants.
func (o *options) rows(ctx context.Context, b *broker.Broker, w *world, variants []variant) ([]row, error) {
	rows := make([]row, len(variants))
	for i := range variants {
		rows[i].name = variants[i].name
	}
	// As in an agent, whose heap is small: garbage is collected after some ten megabytes.
	debug.SetGCPercent(25)
	for round := range o.rounds {
		for i := range variants {
			progress("round %d of %d: %s", round+1, o.rounds, variants[i].name)
			if err := b.Topic(topicOf(i, round), nil); err != nil {
				return nil, err
			}
			c, err := variants[i].send(ctx, b.Address, topicOf(i, round), w.requests)
			if err != nil {
				return nil, err
			}
			rows[i].costs = append(rows[i].costs, c)
		}
	}
	if err := o.profile(ctx, b, w, variants); err != nil {
		return nil, err
	}
	return rows, o.judge(b, w, rows)
}

func topicOf(variant, round int) string { return fmt.Sprintf("spans-%d-%d", variant, round) }

// judge reads what is in Kafka.
func (o *options) judge(b *broker.Broker, w *world, rows []row) error {
	client, err := b.Client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for i := range rows {
		for round := range o.rounds {
			progress("read round %d: %s", round+1, rows[i].name)
			f, err := w.read(client, topicOf(i, round), nil)
			if err != nil {
				return err
			}
			again, err := f.complete()
			if err != nil {
				return fmt.Errorf("look at round %d of %s: %w", round+1, rows[i].name, err)
			}
			rows[i].found, rows[i].again = f, rows[i].again+again
		}
		if rows[i].disk, err = b.DiskBytes(topicOf(i, o.rounds-1)); err != nil {
			return err
		}
	}
	return nil
}

// profile writes a CPU profile of each variant. It has the reading of requests, too.
func (o *options) profile(ctx context.Context, b *broker.Broker, w *world, variants []variant) error {
	if o.profiles == "" {
		return nil
	}
	for i := range variants {
		if err := b.Topic(topicOf(i, o.rounds), nil); err != nil {
			return err
		}
		name := filepath.Join(o.profiles, strings.Map(fileRune, variants[i].name)+".pprof")
		file, err := os.Create(name) //nolint:gosec // of a flag
		if err != nil {
			return fmt.Errorf("write a profile: %w", err)
		}
		err = pprof.StartCPUProfile(file)
		if err == nil {
			_, err = variants[i].send(ctx, b.Address, topicOf(i, o.rounds), w.requests)
			pprof.StopCPUProfile()
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// fileRune keeps what a file name may have.
func fileRune(r rune) rune {
	if strings.ContainsRune(" /:=,", r) {
		return '-'
	}
	return r
}

// search finds the largest steps: of ours, of the stock exporter, and of that with a limit of a record, which it
// compares before compression, that lets the broker decide.
func (o *options) search(ctx context.Context, b *broker.Broker, variants []variant) ([]searched, error) {
	client, err := b.Client()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	raised := stock("stock, producer::max_message_bytes raised", map[string]any{"producer::max_message_bytes": 100_000_000})
	variants = append(variants[:2:2], raised)
	var results []searched
	for i := range growths {
		all, err := largestSteps(ctx, b, client, &growths[i], variants)
		if err != nil {
			return nil, err
		}
		for j := range variants {
			results = append(results, searched{growths[i].name, variants[j].name, all[j]})
		}
	}
	return results, nil
}
