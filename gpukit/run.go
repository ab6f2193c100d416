// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/part"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// check runs the parts and writes the report after each, so that a run that is cut off
// leaves what it found. Without a report nothing could be run; with one and an error,
// the report is not all there is to say.
func check(ctx context.Context, o options, parts []part.Part, stdout io.Writer) (*report.Report, error) {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return nil, fmt.Errorf("make output folder: %w", err)
	}
	unlock, err := lock(o.out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	work, err := os.MkdirTemp(o.work, "lockstep-gpu-")
	if err != nil {
		return nil, fmt.Errorf("make scratch folder: %w", err)
	}
	defer os.RemoveAll(work)
	k := kit.New(o.kit, o.out, work)
	if err := k.Check(); err != nil {
		return nil, err
	}
	if err := setAside(o.out); err != nil {
		return nil, err
	}
	for _, folder := range []string{o.kit, o.out, o.work, filepath.Dir(filepath.Dir(o.python))} {
		k.Scrub.LearnFolder(folder)
	}
	path, named := python(o.python)
	k.Python = path
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	remove, unpacked := k.Unpack(ctx, work, o.out, o.kit)
	defer remove()

	w := &writer{k: k, out: o.out, stdout: stdout, report: &report.Report{
		Format: report.Format, Kit: version + " " + commit, Began: time.Now().UTC(),
		Files: []string{}, Parts: []*report.Part{}, NotRun: names(parts), LeftOut: leftOut(parts),
	}}
	if err := w.write(); err != nil {
		return nil, err
	}
	w.machine(ctx)
	if named == nil && o.python != "" && k.Broken {
		named = errors.New(k.Reason)
	}
	if p := whole(k, unpacked, named); len(p.Checks) > 0 {
		w.add(p)
	}
	for _, a := range parts {
		w.report.NotRun = w.report.NotRun[1:]
		w.add(do(ctx, a, k))
	}
	return w.report, errors.Join(w.err, w.log(), interrupted(ctx))
}

// interrupted returns an error where a signal ended the run before its time.
func interrupted(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errors.New("interrupted: what had not begun was not run")
	}
	return nil
}

// setAside moves the report of an earlier run, and its fixtures, into a folder beside
// them that is named after the time at which it began. Other files stay.
func setAside(out string) error {
	text, err := os.ReadFile(filepath.Join(out, report.JSONName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the report of an earlier run: %w", err)
	}
	var old report.Report
	if err := json.Unmarshal(text, &old); err != nil || old.Format == 0 || old.Kit == "" || old.Began.IsZero() {
		return fmt.Errorf("use output folder: got a %s in it that is no report of the kit; want another folder", report.JSONName)
	}
	aside := filepath.Join(out, old.Began.UTC().Format("20060102T150405Z"))
	if err := os.MkdirAll(aside, 0o755); err != nil {
		return fmt.Errorf("set the report of an earlier run aside: %w", err)
	}
	for _, name := range append(slices.Clone(old.Files), report.MarkdownName, report.JSONName) {
		if filepath.Base(name) != name || !filepath.IsLocal(name) {
			continue
		}
		if err := os.Rename(filepath.Join(out, name), filepath.Join(aside, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("set the report of an earlier run aside: %w", err)
		}
	}
	return nil
}

func names(parts []part.Part) (all []string) {
	for _, a := range parts {
		all = append(all, a.Name)
	}
	return all
}

// leftOut returns the parts that -only left out.
func leftOut(parts []part.Part) []string {
	chosen := names(parts)
	return slices.DeleteFunc(names(part.All()), func(name string) bool { return slices.Contains(chosen, name) })
}

// writer writes the report as it grows.
type writer struct {
	k      *kit.Kit
	report *report.Report
	out    string
	stdout io.Writer
	err    error // the first of writing
}

// machine finds out what the machine has.
func (w *writer) machine(ctx context.Context) {
	w.report.Machine = w.k.Look(ctx)
	for _, f := range w.report.Machine {
		fmt.Fprintf(w.stdout, "%-20s %s\n", f.Name, f.Value)
	}
}

// add adds a part. A folder that cannot be written any more costs no other part.
func (w *writer) add(p *report.Part) {
	w.report.Parts = append(w.report.Parts, p)
	w.report.TookS = time.Since(w.report.Began).Seconds()
	w.report.Files = w.k.Fixtures()
	progress(w.stdout, p)
	if err := w.write(); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *writer) write() error { return w.report.Write(w.out, w.k.Scrub.String) }

// log keeps what programs wrote, as one more fixture.
func (w *writer) log() error {
	if err := w.k.Fixture("log", kit.Entry{Name: "log.txt", Content: []byte(w.k.Log.String())}); err != nil {
		return err
	}
	w.report.Files = w.k.Fixtures()
	return w.write()
}

// whole returns a part that has a failed check for each file of the kit that is not as it
// was built, for a command that could not be unpacked, and for an interpreter that was
// named and does not run.
func whole(k *kit.Kit, unpacked, python error) *report.Part {
	began := time.Now()
	p := report.NewPart("kit", "The kit's own files, and its interpreter", 0)
	broken, err := k.Verify()
	if err = errors.Join(err, unpacked); err != nil {
		p.Add("kit", report.Failed, err.Error())
	}
	for _, line := range broken {
		p.Add("file", report.Failed, line+": copy the kit to this machine again")
	}
	if python != nil {
		p.Add("python", report.Failed, python.Error())
	}
	p.Close(time.Since(began))
	return p
}

// do runs a part, or reports that there was no time for it.
func do(ctx context.Context, a part.Part, k *kit.Kit) *report.Part {
	var why string
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		why = "the run was interrupted"
	case ctx.Err() != nil:
		why = "the time for everything was over"
	default:
		return a.Do(ctx, k)
	}
	p := report.NewPart(a.Name, a.Title, a.Limit)
	p.Addf("start", report.NotShown, "not run: %s; -only %s runs it alone", why, a.Name)
	p.Close(0)
	return p
}

func progress(w io.Writer, p *report.Part) {
	fmt.Fprintf(w, "\n%s (%.1f s)\n", p.Title, p.TookS)
	for _, c := range p.Checks {
		fmt.Fprintf(w, "  %-10s %-28s %s\n", c.Status, c.Name, c.Text)
		for _, f := range c.Figures {
			fmt.Fprintf(w, "  %-10s %-28s   %s\n", "", "", f)
		}
	}
}

// errBusy is returned for a folder into which another run writes.
var errBusy = errors.New("another run writes into it")

// used names a folder in an error.
func used(out string, err error) error {
	return fmt.Errorf("lock output folder %s: %w", strings.TrimSuffix(out, "/"), err)
}
