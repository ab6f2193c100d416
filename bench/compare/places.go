// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is what an input is.
type kind string

// Kinds of inputs.
const (
	kindTraces      kind = "traces"      // of ranks: PyTorch profiler, OTLP JSON, or look-alikes
	kindDumps       kind = "dumps"       // of Flight Recorder, logs of watchdogs, answers of RAS
	kindCheckpoints kind = "checkpoints" // a folder of saves
	kindSpans       kind = "spans"       // of services, a feed of the collector
	kindFeed        kind = "feed"        // requests of all connectors
)

// place is one input as a file or folder.
type place struct {
	name string // for people
	path string
	kind kind
	// job is a feed of the same job for the collector; empty: there is none.
	job string
	// annotated: its spans are compared as a processor leaves them, too, which are many.
	annotated bool
	// start is when a collector that gets it starts; zero: after its newest file.
	start time.Time
}

type places []place

// rules say what is what, by path below a root.
var rules = []struct {
	root string // testdata, cases, data, or internal
	glob string
	kind kind
	// make prepares the input in a folder of its own; nil: it is read where it is.
	make func(ctx context.Context, from, to string) error
}{
	{"testdata", "recordings/healthy", kindTraces, nil},
	{"testdata", "recordings/slow", kindTraces, nil},
	{"testdata", "hangs/*/dumps", kindDumps, withTimes},
	{"internal", "flightrecorder/testdata", kindDumps, nil},
	{"internal", "torchsave/testdata", kindCheckpoints, nil},
	{"internal", "ocdbt/testdata", kindCheckpoints, nil},
	{"cases", "traces/*/in", kindTraces, nil},
	{"cases", "hangs/*/in", kindDumps, nil},
	{"cases", "checkpoints/*.tar.gz", kindCheckpoints, unpack},
	{"cases", "clocks/*.otlp.jsonl.gz", kindSpans, feedSpans},
	{"data", "dlrm-8xV100", kindTraces, nil},
	{"data", "kineto-single/*.json.gz", kindTraces, nil},
	{"data", "flight-recorder/*", kindDumps, nil},
}

// Folders of inputs that are not part of a checkout.
const (
	envData  = "LOCKSTEP_DATA"  // as internal/testdata has it
	envCases = "LOCKSTEP_CASES" // cases from the field
)

// find lists all inputs that are files, and unpacks those that must be.
func (c *comparison) find(ctx context.Context) (places, error) {
	shared := filepath.Join(c.head.tree, "..", "shared")
	roots := []struct{ name, path, env string }{
		{"testdata", filepath.Join(c.head.tree, "testdata"), ""},
		{"internal", filepath.Join(c.head.tree, "internal"), ""},
		{"cases", cmp.Or(os.Getenv(envCases), filepath.Join(shared, "cases")), envCases},
		{"data", cmp.Or(os.Getenv(envData), filepath.Join(shared, "data")), envData},
	}
	var out places
	for _, root := range roots {
		if _, err := os.Stat(root.path); err != nil {
			if root.env != "" {
				err = fmt.Errorf("%w; %s names another folder", err, root.env)
			}
			c.skip("%s: %v", root.name, err)
			continue
		}
		found, err := c.findIn(ctx, root.name, root.path)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		if root.name != "internal" { // which holds much that is no input
			c.counts.unread = append(c.counts.unread, unread(root.name, root.path)...)
		}
	}
	return out, nil
}

func (c *comparison) findIn(ctx context.Context, root, path string) (out places, err error) {
	for _, r := range rules {
		if r.root != root {
			continue
		}
		matches, err := filepath.Glob(filepath.Join(path, r.glob))
		if err != nil {
			return nil, fmt.Errorf("find inputs: %w", err)
		}
		for _, from := range matches {
			if info, err := os.Stat(from); err != nil || r.glob == "flight-recorder/*" && !info.IsDir() {
				continue
			}
			name := root + "/" + relative(path, from)
			if r.make == nil {
				out = append(out, place{name: name, path: from, kind: r.kind})
				continue
			}
			to := filepath.Join(c.work, "inputs", strings.TrimSuffix(name, ".tar.gz"))
			if err := os.MkdirAll(to, 0o750); err != nil {
				return nil, fmt.Errorf("make input: %w", err)
			}
			if err := r.make(ctx, from, to); err != nil {
				return nil, fmt.Errorf("make input %s: %w", name, err)
			}
			made, err := variants(name, to, r.kind)
			if err != nil {
				return nil, err
			}
			out = append(out, made...)
		}
	}
	return out, nil
}

// variants lists the folders of an archive as an input each; what holds files is one itself.
func variants(name, path string, k kind) (out places, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("list input: %w", err)
	}
	if k != kindCheckpoints || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() }) {
		return places{{name: name, path: path, kind: k}}, nil
	}
	// The archive has one folder of its name around its variants.
	if len(entries) == 1 && strings.HasPrefix(filepath.Base(name), entries[0].Name()) {
		return variants(name, filepath.Join(path, entries[0].Name()), k)
	}
	for _, e := range entries {
		out = append(out, place{name: name + "/" + e.Name(), path: filepath.Join(path, e.Name()), kind: k})
	}
	return out, nil
}

func relative(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// unread lists files of a root that no rule names.
func unread(name, root string) (out []string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be listed is no input either
		}
		if d.IsDir() {
			return nil
		}
		rel := relative(root, path)
		for _, r := range rules {
			if r.root == name && below(r.glob, rel) {
				return nil
			}
		}
		out = append(out, name+"/"+rel)
		return nil
	})
	return out
}

// below reports whether the path, or a folder of it, matches.
func below(glob, path string) bool {
	for p := path; p != "."; p = filepath.Dir(p) {
		if ok, err := filepath.Match(glob, p); err == nil && ok {
			return true
		}
	}
	return false
}

// unpack has tar restore an archive with the times of its files.
func unpack(ctx context.Context, from, to string) error {
	_, err := output(ctx, to, nil, "tar", "-xpzf", from)
	return err
}

// withTimes copies the dumps of a recorded hang and gives them the times that seen.json has,
// which no checkout keeps.
func withTimes(_ context.Context, from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(from), "seen.json"))
	if err != nil {
		return err
	}
	var seen struct{ Written map[string]int64 }
	if err := json.Unmarshal(text, &seen); err != nil {
		return fmt.Errorf("read seen.json: %w", err)
	}
	for rank, ns := range seen.Written {
		if _, err := strconv.Atoi(rank); err != nil {
			return fmt.Errorf("read seen.json: got rank %q; want a number", rank)
		}
		at := time.Unix(0, ns)
		if err := os.Chtimes(filepath.Join(to, "rank_"+rank), at, at); err != nil {
			return err
		}
	}
	return nil
}

// newest returns the newest time of a file at or below path.
func newest(path string) (at time.Time) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not newer
		}
		if d.IsDir() { // its time says nothing of what was written into its files
			return nil
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
		return nil
	})
	return at
}
