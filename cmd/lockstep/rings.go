// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// defaultRings is where processes put their rings unless LOCKSTEP_DIR says otherwise.
const defaultRings = "/run/lockstep"

// ringsOptions are the flags of rings.
type ringsOptions struct {
	records bool
	json    bool
	last    time.Duration
	level   string
}

// ringLevels are the values of --level.
var ringLevels = map[string]ring.Level{
	"default": 0, "summary": ring.LevelSummary, "collectives": ring.LevelCollectives, "all": ring.LevelAll,
}

func newRings() *cobra.Command {
	o := &ringsOptions{}
	cmd := &cobra.Command{
		Use:   "rings [DIRECTORY|FILE]...",
		Short: "Show what the processes on this host have in flight, and what they recorded",
		Long: "Reads the rings that processes on this host write their events to: who they are, whether they\n" +
			"live, what feeds the ring (NCCL, scopes, NVTX ranges, CUPTI), what they lost, in which scope each\n" +
			"thread is, and every operation that is open, which is what a hung or killed rank leaves behind.\n" +
			"Reading disturbs nobody: the job does not notice, and a collector still gets every record.\n" +
			"A process is taken for dead when nobody holds its ring's lock and no heartbeat came for 3 s; what it\n" +
			"left open has been open up to its last sign of life.\n\n" +
			"Without an argument, reads those of the directory LOCKSTEP_DIR, or where that is not set, of\n" +
			defaultRings + ": where the processes make them.\n\n" +
			"With --records, prints what is still recorded as one JSON object a line, of every level of detail,\n" +
			"also of what no collector has asked for. Keys that end in _ns are nanoseconds of CLOCK_MONOTONIC_RAW,\n" +
			"those in _gpu_clock are of the GPU's clock, those in _cupti_clock of CUPTI's; a kernel's begin_ns and\n" +
			"end_ns are 0 where no reading of CUPTI's clock is near. With --json, prints one such object a ring.\n\n" +
			"--level says what the processes are to record from now on; a collector that reads them may say\n" +
			"otherwise when it starts.\n\n" +
			"Exit status: 0 rings were read, 2 there were none, or none could be read.",
		Example: "  lockstep rings\n" +
			"  lockstep rings --records --last 10s /run/lockstep | jq 'select(.kind==\"op\")'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&o.records, "records", false, "print the records that are still there, as JSON lines")
	cmd.Flags().BoolVar(&o.json, "json", false, "print each ring as a line of JSON: its process, what feeds it, where its threads are, what is open")
	cmd.Flags().StringVar(&o.level, "level", "", "first ask the processes to record so much: default, summary, collectives, all")
	cmd.Flags().DurationVar(&o.last, "last", 0, "with --records: only those of the last so long (default: all)")
	return cmd
}

func (o *ringsOptions) run(args []string, stdout, stderr io.Writer) error {
	if o.last < 0 {
		return fmt.Errorf("check --last: got %v; want 0 or more", o.last)
	}
	if o.last > 0 && !o.records {
		return fmt.Errorf("check --last: got %v without --records; want both, or neither", o.last)
	}
	if o.json && o.records {
		return errors.New("check --json: got it with --records, which prints JSON; want one of the two")
	}
	if _, ok := ringLevels[o.level]; o.level != "" && !ok {
		return fmt.Errorf("check --level: got %q; want default, summary, collectives or all", o.level)
	}
	if len(args) == 0 {
		args = []string{ringsDirectory(os.Getenv)}
	}
	out := bufio.NewWriter(stdout)
	shown, frontiers := 0, newRingFrontiers()
	for _, path := range ringPaths(args, stderr) {
		r, err := ring.Open(path, ring.Options{})
		if err == nil {
			err = o.show(out, r)
			if err == nil && !o.records && !o.json {
				frontiers.add(r)
			}
			_ = r.Close() // only read from
		}
		if err != nil {
			_, _ = fmt.Fprintf(stderr, "lockstep: %s\n", printable(err.Error()))
			continue
		}
		shown++
	}
	frontiers.write(out)
	if err := out.Flush(); err != nil {
		return failure{fmt.Errorf("write output: %w", err)}
	}
	if shown == 0 {
		_, _ = fmt.Fprintf(stderr, "lockstep: no ring in %s\n", printable(strings.Join(args, ", ")))
		return statusError(exitUnusable)
	}
	return nil
}

func ringsDirectory(getenv func(string) string) string {
	if dir := getenv("LOCKSTEP_DIR"); dir != "" {
		return dir
	}
	return defaultRings
}

// ringPaths lists the rings of directories; what is refused goes to stderr.
func ringPaths(args []string, stderr io.Writer) (paths []string) {
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		found, refused := ring.Discover(arg, ring.Options{})
		for _, err := range refused {
			_, _ = fmt.Fprintf(stderr, "lockstep: %s\n", printable(err.Error()))
		}
		paths = append(paths, found...)
	}
	return paths
}

func (o *ringsOptions) show(w io.Writer, r *ring.Ring) error {
	if o.level != "" {
		if err := r.SetLevel(ringLevels[o.level]); err != nil {
			return err
		}
	}
	if o.records {
		return o.dump(w, r, ring.Now())
	}
	h := r.Header()
	life, err := lifeOf(r)
	if err != nil {
		return err
	}
	if o.json {
		return o.overview(w, r, &life)
	}
	_, _ = fmt.Fprintf(w, "%s\n  %s\n", printable(r.Path()), ringOwner(&h))
	lanes := lanesOf(r)
	_, _ = fmt.Fprintf(w, "  %s, records level %s, %s\n", life.words(), ringLevel(r), lanes.words())
	if fed := ringFed(r); fed != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", fed)
	}
	if drops := ringDrops(r.Drops()); drops != "" {
		_, _ = fmt.Fprintf(w, "  counted by the process: %s\n", drops)
	}
	if crowded := lanes.crowded(); crowded != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", crowded)
	}
	showOpen(w, r, &life)
	return r.Err()
}

func ringOwner(h *ring.Header) string {
	var parts []string
	if h.Rank != ring.None {
		parts = append(parts, fmt.Sprintf("rank %d of %s", h.Rank, orUnknown(h.WorldSize)))
	}
	if job := jobWords(h); job != "" {
		parts = append(parts, job)
	}
	return strings.Join(append(parts, fmt.Sprintf("process %d on %s", h.PID, h.HostName)), ", ")
}

func jobWords(h *ring.Header) string {
	switch {
	case h.JobName == "" && h.JobID == "":
		return ""
	case h.JobName == "" || h.JobName == h.JobID:
		return "job " + h.JobID
	case h.JobID == "":
		return "job of name " + h.JobName
	}
	return fmt.Sprintf("job %s (%s)", h.JobID, h.JobName)
}

func orUnknown(n int32) string {
	if n == ring.None {
		return "unknown"
	}
	return strconv.Itoa(int(n))
}

// ringLevel is what the process records, and where it has not yet taken up what
// it is asked for, that.
func ringLevel(r *ring.Ring) string {
	now, asked := r.Level(), r.Asked()
	if asked == now || asked == 0 {
		return now.String()
	}
	return fmt.Sprintf("%s (asked for %s)", now, asked)
}

func ringDrops(drops [ring.DropCount]uint64) string {
	var parts []string
	for i, n := range drops {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", ring.DropName(i), n))
		}
	}
	return strings.Join(parts, ", ")
}

// showOpen prints the operations in flight, in the order of their communicators.
func showOpen(w io.Writer, r *ring.Ring, life *ringLife) {
	open := r.InFlight(nil)
	now := life.until(open)
	showScopes(w, r, now)
	if len(open) == 0 {
		_, _ = fmt.Fprint(w, "  no operation is open\n\n")
		return
	}
	sortOpen(open)
	comms := commsOf(r)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "  open for\toperation\tnumber\tcommunicator\tbytes\tstate\tproxy")
	for i := range open {
		s := &open[i]
		_, _ = fmt.Fprintf(t, "  %v\t%s\t%d\t%s\t%d\t%s\t%s\n", age(now, s.Record.EnqueueBegin()),
			r.String(uint16(s.Record.Func())), s.Record.Seq(), commName(comms, s.Record.Comm()), s.Record.Bytes(), s.State, proxyWords(s, now))
	}
	_ = t.Flush() // w keeps the error
	_, _ = fmt.Fprintln(w)
}

// sortOpen puts first the communicator whose oldest operation is open longest,
// and its operations in their order: the first is the one that blocks.
func sortOpen(open []ring.Slot) {
	oldest := map[uint16]uint64{}
	for i := range open {
		comm, at := open[i].Record.Comm(), open[i].Record.EnqueueBegin()
		if first, ok := oldest[comm]; !ok || at < first {
			oldest[comm] = at
		}
	}
	slices.SortFunc(open, func(a, b ring.Slot) int {
		x, y := a.Record.Comm(), b.Record.Comm()
		return cmp.Or(cmp.Compare(oldest[x], oldest[y]), cmp.Compare(x, y), cmp.Compare(a.Order, b.Order),
			cmp.Compare(a.Record.EnqueueBegin(), b.Record.EnqueueBegin()))
	})
}

func commName(comms map[uint16]ring.Comm, index uint16) string {
	c, ok := comms[index]
	if !ok {
		return "unknown"
	}
	return strings.TrimSpace(fmt.Sprintf("%016x %s", c.Hash, c.Name))
}

func proxyWords(s *ring.Slot, now uint64) string {
	var parts []string
	for _, w := range []ring.Wait{s.Send, s.Receive} {
		if w.State != ring.ProxyNone {
			parts = append(parts, fmt.Sprintf("%s, peer %d, for %v", w.State, w.Peer, age(now, w.Since)))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}
