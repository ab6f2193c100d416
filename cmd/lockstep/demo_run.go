// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
)

// runDemo runs the job and the collector beside it until the job has ended.
func runDemo(o *demoOptions, stdout, stderr io.Writer) error {
	parts, err := o.findParts()
	if err != nil {
		return failure{err}
	}
	dir, err := makeDemoDir(o.dir)
	if err != nil {
		return failure{err}
	}
	d := &demo{options: o, dir: dir, screen: newDemoScreen(o, dir, stdout), stderr: stderr}
	defer d.cleanUp()
	if o.torch != "" && !o.keep {
		if d.janitor, err = startJanitor(dir); err != nil {
			return failure{err}
		}
	}
	if err := d.run(parts); err != nil {
		return failure{err}
	}
	return nil
}

// makeDemoDir makes a directory that only this user may enter, with one for the
// rings and one for the ranks to meet in.
func makeDemoDir(in string) (string, error) {
	dir, err := os.MkdirTemp(in, "lockstep-demo-")
	if err != nil {
		return "", fmt.Errorf("make the demo's directory: %w", err)
	}
	for _, name := range []string{"rings", "meet"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			_ = os.RemoveAll(dir)
			return "", fmt.Errorf("make the demo's directory: %w", err)
		}
	}
	return dir, nil
}

// demo is one run of the command.
type demo struct {
	options *demoOptions
	dir     string
	screen  *demoScreen
	stderr  io.Writer

	job       *demoJob
	collector *demoCollector
	janitor   *janitor  // nil: the workers clean up
	began     time.Time // when the workers were started
	stopping  bool
	hangFound time.Time // when a hang was told of first
	signalled time.Time // when the first signal came
}

func (d *demo) cleanUp() {
	if !d.options.keep {
		_ = os.RemoveAll(d.dir) // what is left of it is in the system's temporary directory
	}
	if d.janitor != nil {
		d.janitor.end()
	}
}

func (d *demo) run(parts demoParts) (err error) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	// A reader that goes away is an error of the write, not the end of us: there
	// is a directory to remove. To ignore the signal would be inherited.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	found := make(chan model.Finding, journal.MaxFindings)
	seen := newTap()
	seen.shown = component.MustNewID("report")
	seen.onFinding = func(f model.Finding) {
		select {
		case found <- f:
		default: // nobody reads so many; the summary has the latest of each
		}
	}
	open := make(chan string, maxDemoRanks)
	seen.onOpen = func(said string) {
		select {
		case open <- said:
		default: // it is told again while it stays open
		}
	}
	d.screen.begin()
	if d.collector, err = startDemoCollector(filepath.Join(d.dir, "rings"), d.options.level, seen); err != nil {
		return err
	}
	if d.job, err = startDemoJob(d.options, parts, d.dir, d.stderr); err != nil {
		_ = d.collector.stop()
		return err
	}
	d.began = time.Now()
	return d.watch(signals, found, open, seen)
}

// lookEvery is how often it is looked whether the job still moves.
const lookEvery = 500 * time.Millisecond

// watch shows what happens until the job has ended and all of it was judged.
func (d *demo) watch(signals <-chan os.Signal, found <-chan model.Finding, open <-chan string, seen *tap) error {
	lines := d.job.lines
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for lines != nil {
		select {
		case l, ok := <-lines:
			if !ok {
				lines = nil
				break
			}
			d.screen.line(&l)
		case now := <-look.C:
			d.screen.still(now)
			if d.hung(now) {
				d.stop()
			}
		case said := <-open:
			d.screen.open(said)
		case f := <-found:
			d.screen.finding(&f)
			if f.Kind == model.FindingDesync && d.hangFound.IsZero() {
				d.hangFound = time.Now()
			}
			if d.enough(&f) {
				d.stop()
			}
		case <-signals:
			d.interrupted()
		case err := <-d.collector.ended:
			d.collector.ended <- err
			d.stop()
			d.drain()
			d.screen.summary(seen, "")
			return fmt.Errorf("run collector: %w", orEnded(err))
		}
		if d.screen.w.err != nil {
			d.stop()
		}
	}
	return d.conclude(found, seen)
}

// sameSignal is how close signals come that are one: timeout(1) and others send
// theirs to a process and to its group.
const sameSignal = 250 * time.Millisecond

func (d *demo) interrupted() {
	switch {
	case d.signalled.IsZero():
		d.signalled = time.Now()
		d.screen.ending()
		d.stop()
	case time.Since(d.signalled) > sameSignal:
		d.endAtOnce()
	}
}

// seenAfter is some polls of the receiver on a machine that does much else: workers
// that are ended sooner take their rings away before anything of them is read.
const seenAfter = 2 * time.Second

func (d *demo) endedSoon() bool {
	return !d.signalled.IsZero() && d.signalled.Sub(d.began) < seenAfter
}

func (d *demo) stop() {
	if !d.stopping {
		d.stopping = true
		d.job.stop()
	}
}

func (d *demo) drain() {
	for range d.job.lines {
	}
}

// endAtOnce is for who presses Ctrl-C twice.
func (d *demo) endAtOnce() {
	d.job.signal(syscall.SIGKILL)
	d.cleanUp()
	os.Exit(exitInterrupted)
}

// demoSettle is some polls of the receiver: what the ranks wrote last.
const demoSettle = 300 * time.Millisecond

func (d *demo) conclude(found <-chan model.Finding, seen *tap) error {
	if !d.stopping {
		time.Sleep(demoSettle)
	}
	err := d.collector.stop()
	d.screen.over = true
	for {
		select {
		case f := <-found:
			d.screen.finding(&f)
			continue
		default:
		}
		break
	}
	_, _, ranks := seen.result()
	if !d.screen.ran() || d.endedSoon() || d.screen.w.err != nil {
		ranks = d.options.ranks // too short to miss anybody
	}
	unseen := d.job.stderr.unseen(d.options.ranks, ranks)
	d.screen.summary(seen, unseen)
	switch {
	case d.job.err != nil:
		return d.job.err
	case err != nil:
		return err
	case unseen != "":
		return fmt.Errorf("watch the job: %s", unseen)
	}
	return d.screen.w.failed()
}
