// SPDX-License-Identifier: Apache-2.0

// Command cost measures what the probe mesh costs: nodes on loopback addresses of
// one process, each with a prober, a reflector and its estimates, at rising rates.
// Each rate is a process of its own, so that CPU time is that of the rate alone.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/probe"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "cost: %v\n", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

const (
	// warmUp is until all nodes probe and their first windows are over, on an idle machine.
	warmUp = 5 * time.Second
	// patience is how long that may take on a busy one.
	patience = time.Minute
)

func run() error {
	nodes := flag.Int("nodes", 12, "hosts, each of which probes k others")
	k := flag.Int("k", probe.DefaultK, "neighbours of each")
	rates := flag.String("rates", "1,10,100", "packets a second to each neighbour")
	length := flag.Duration("length", 10*time.Second, "how long each rate is measured")
	child := flag.Float64("measure", -1, "measure this rate and print it as JSON")
	flag.Parse()
	if *nodes < 2 || *nodes > 250 {
		return fmt.Errorf("read nodes: got %d; want 2 to 250", *nodes)
	}
	if *child >= 0 {
		m, err := measure(*nodes, *k, *child, *length)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	return table(os.Stdout, *nodes, *k, "0,"+*rates, *length)
}

// measurement is what all nodes together did in Seconds.
type measurement struct {
	Seconds      float64
	User, System float64 // seconds of CPU
	Pairs        int     // a prober and one of its neighbours
	Over         float64 // seconds, of the counters below
	Sent         int64
	Kernel       int64 // of these, stamped by the kernel on sending
	Skipped      int64 // pairs of packets that the pacer was too late for
	Resident     int64 // bytes, the largest
}

// table prints a line for each rate. Rate 0 is nodes without neighbours: what a
// host costs before it probes.
func table(w io.Writer, nodes, k int, rates string, length time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	fmt.Fprintf(w, "%d nodes on loopback, about %d neighbours each, %v for each rate; both ends of each pair are in the figures.\n\n", nodes, min(k, nodes-1), length)
	fmt.Fprintln(w, "| probes/s | pairs | CPU s/s, 1,000 pairs | beyond rate 0 | packets/s, 1,000 pairs | of those asked for | pairs skipped | µs CPU/packet | system share | kernel stamps | peak MiB |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|")
	idle := 0.0
	for _, text := range strings.Split(rates, ",") {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("read rates: %w", err)
		}
		cmd := exec.CommandContext(context.Background(), self, "-nodes", strconv.Itoa(nodes), "-k", strconv.Itoa(k), "-length", length.String(), "-measure", text)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("measure rate %v: %w", rate, err)
		}
		var m measurement
		if err := json.Unmarshal(out, &m); err != nil {
			return fmt.Errorf("read measurement: %w", err)
		}
		cpu := (m.User + m.System) / m.Seconds
		if rate == 0 {
			idle = cpu
			fmt.Fprintf(w, "| 0 | 0 | %.4f CPU s/s for each node | | | | | | %.0f %% | | %.0f |\n", cpu/float64(nodes), 100*m.System/(m.User+m.System), mib(m.Resident))
			continue
		}
		if m.Pairs == 0 || m.Sent == 0 {
			return fmt.Errorf("measure rate %v: got %d pairs and %d packets; want some", rate, m.Pairs, m.Sent)
		}
		thousand := 1000 / float64(m.Pairs)
		packets := float64(m.Sent) / m.Over
		asked := 2 * rate * float64(m.Pairs) // each is answered
		fmt.Fprintf(w, "| %v | %d | %.3f | %.3f | %.0f | %.1f %% | %d | %.1f | %.0f %% | %.0f %% | %.0f |\n",
			rate, m.Pairs, cpu*thousand, (cpu-idle)*thousand, packets*thousand, 100*packets/asked, m.Skipped,
			1e6*cpu/packets, 100*m.System/(m.User+m.System), 100*float64(m.Kernel)/float64(m.Sent), mib(m.Resident))
	}
	return nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// latest is the last outcome of each node.
type latest struct {
	mu  sync.Mutex
	all []probe.Outcome
}

func (l *latest) get() []probe.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]probe.Outcome(nil), l.all...)
}

// wait waits until each node has ended a window.
func (l *latest) wait(limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		none := slices.IndexFunc(l.get(), func(o probe.Outcome) bool { return o.Until.IsZero() })
		switch {
		case none < 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("wait for windows: got none of node %d in %v", none, limit)
		}
	}
}

func measure(nodes, k int, rate float64, length time.Duration) (m measurement, err error) {
	seen := &latest{all: make([]probe.Outcome, nodes)}
	var all []*probe.Node
	defer func() {
		for _, n := range all {
			err = errors.Join(err, n.Close())
		}
	}()
	for i := range nodes {
		n, e := start(i, nodes, k, rate, seen)
		if e != nil {
			return m, e
		}
		all = append(all, n)
	}
	time.Sleep(warmUp)
	if err := seen.wait(patience); err != nil {
		return m, err
	}
	before, from, begun := seen.get(), usage(), time.Now()
	time.Sleep(length)
	after, until := seen.get(), usage()
	m = measurement{
		Seconds:  time.Since(begun).Seconds(),
		User:     seconds(until.Utime) - seconds(from.Utime),
		System:   seconds(until.Stime) - seconds(from.Stime),
		Resident: until.Maxrss << 10,
	}
	return m, m.add(before, after)
}

// add adds what the nodes counted between two of their windows each.
func (m *measurement) add(before, after []probe.Outcome) error {
	for i := range after {
		over := after[i].Until.Sub(before[i].Until)
		if before[i].Until.IsZero() || over <= 0 {
			return fmt.Errorf("measure node %d: got windows up to %v and %v; want two: measure for longer", i, before[i].Until, after[i].Until)
		}
		m.Pairs += after[i].Neighbours
		m.Over += over.Seconds() / float64(len(after))
		m.Sent += moved(before[i], after[i], "socket.packets_sent")
		m.Kernel += moved(before[i], after[i], "socket.sent_stamps.kernel")
		m.Skipped += moved(before[i], after[i], "node.probes_skipped")
	}
	return nil
}

func moved(before, after probe.Outcome, counter string) int64 {
	return after.Counters[counter] - before.Counters[counter]
}

// start starts the i-th node. At rate 0 it knows nobody else.
func start(i, nodes, k int, rate float64, seen *latest) (*probe.Node, error) {
	var members []string
	for j := range nodes {
		if rate > 0 || j == i {
			members = append(members, fmt.Sprintf("node%d %v", j, address(j)))
		}
	}
	peers, err := mesh.NewFixed(members, probe.DefaultPort)
	if err != nil {
		return nil, err
	}
	n, err := probe.New(probe.Config{
		NodeID: fmt.Sprintf("node%d", i), HostID: fmt.Sprintf("host%d", i), BootID: "boot",
		Locals: []netip.AddrPort{address(i)}, Peers: peers, K: k, Rate: rate,
		Emit: func(o probe.Outcome) {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.all[i] = o
		},
		Warn: func(err error) { fmt.Fprintf(os.Stderr, "cost: node %d: %v\n", i, err) },
	})
	if err != nil {
		return nil, err
	}
	return n, n.Start()
}

// address is the i-th of 127.77.0.0/24, which is this machine's without setup.
func address(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 77, 0, byte(i + 1)}), probe.DefaultPort)
}

func usage() (u syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are right
	}
	return u
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
