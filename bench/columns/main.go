// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lockstep-otel/lockstep/internal/columns"
)

func main() {
	data := flag.String("data", "../shared/data", "folder of real traces; those that are absent are left out")
	each := flag.Bool("columns", false, "list what each column takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *data, *each)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "columns:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// Aims of the format, bytes an operation, and the share of OTLP with zstd.
const (
	coreAim  = 6.0
	allAim   = 20.0
	shareAim = 1.0 / 3
)

func run(ctx context.Context, to io.Writer, data string, each bool) error {
	sources, err := collect(ctx, data)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	var empty int64
	fmt.Fprintln(out, "operations of\tcount\tcore B\tall B\tall 100 ns B\tOTLP B\tOTLP zstd B\tall/OTLP zstd\taims missed\tns to write")
	for _, s := range sources {
		m, err := measure(s)
		if err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
		n := float64(m.ops)
		fmt.Fprintf(out, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t%.3f\t%s\t%.0f\n", s.name, m.ops, float64(m.core)/n, float64(m.file)/n, float64(m.coarse)/n,
			float64(m.otlp)/n, float64(m.zipped)/n, float64(m.file)/float64(m.zipped), m.missed(), float64(m.time.Nanoseconds())/n)
		if each {
			m.list(out)
		}
		empty = m.empty()
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	fmt.Fprintf(to, "a column without values takes %d bytes of a row group\n", empty)
	return nil
}

// empty returns what the smallest column takes of a row group, with its part of the metadata.
func (m *measured) empty() int64 {
	least, rest := m.file, m.file
	for _, n := range m.columns {
		least, rest = min(least, n), rest-n
	}
	return (least + rest/int64(len(m.columns))) / int64(m.groups)
}

// missed names the aims that are missed.
func (m *measured) missed() string {
	n := float64(m.ops)
	var missed []string
	for _, a := range []struct {
		name      string
		got, want float64
	}{{"core", float64(m.core) / n, coreAim}, {"all", float64(m.file) / n, allAim}, {"share", float64(m.file) / float64(m.zipped), shareAim}} {
		if a.got > a.want {
			missed = append(missed, a.name)
		}
	}
	if len(missed) == 0 {
		return "none"
	}
	return strings.Join(missed, " ")
}

// list prints what each column takes, the largest first.
func (m *measured) list(out io.Writer) {
	names := columns.Names()
	slices.SortStableFunc(names, func(a, b string) int { return int(m.columns[b] - m.columns[a]) })
	rest := m.file
	for _, name := range names {
		fmt.Fprintf(out, "  %s\t\t%.3f\n", name, float64(m.columns[name])/float64(m.ops))
		rest -= m.columns[name]
	}
	fmt.Fprintf(out, "  (metadata)\t\t%.3f\n", float64(rest)/float64(m.ops))
}
