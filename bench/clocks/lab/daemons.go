// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clockstate"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// All namespaces share this machine's clock, so what a daemon takes the offset
// between two of them for is its error.

// settle is how long the daemons have before they are measured: chronyd sends its
// burst and fits; ptp4l elects a master.
const settle = 12 * time.Second

// daemonErrors are what a daemon's offsets were off by, as it had them, and their
// medians over windows of 2 s.
type daemonErrors struct {
	each, windows errors
	asked, failed int
	last          error // why it failed
}

// patience is how long all of the daemons may take to follow the first one after settle,
// and mostFailed the share of questions that they may leave without an answer then: on a
// machine that is too busy for them they lose it now and then.
const (
	patience   = 30 * time.Second
	mostFailed = 0.5
)

// ask asks once more where there is time to.
func (d *daemonErrors) ask(ctx context.Context, i int, until time.Time, ask func(i int) (float64, int64, error)) (offset float64, at int64, ok bool, err error) {
	for {
		offset, at, err = ask(i)
		if err == nil || !time.Now().Before(until) {
			break
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return 0, 0, false, err
		}
	}
	d.asked++
	if err != nil {
		d.failed++
		d.last = err
	}
	return offset, at, err == nil, nil
}

// runChrony measures chronyd: the first node serves, the others follow it.
func runChrony(ctx context.Context, w *network, dir string, poll int, length time.Duration) (daemonErrors, error) {
	cs := &children{}
	defer cs.stop()
	sockets := make([]string, len(w.names))
	for i, name := range w.names {
		own, err := os.MkdirTemp(dir, "chrony-*") // chronyd wants one that others cannot read
		if err != nil {
			return daemonErrors{}, fmt.Errorf("create folder: %w", err)
		}
		sockets[i] = filepath.Join(own, "chronyd.sock")
		role := fmt.Sprintf("server %s minpoll %d maxpoll %d xleave\n", w.addr(0), poll, poll)
		if i == 0 {
			role = "local stratum 1\nallow all\n"
		}
		config := filepath.Join(own, "chrony.conf")
		content := role + fmt.Sprintf("cmdport 0\nbindcmdaddress %s\npidfile %s/pid\n", sockets[i], own)
		if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
			return daemonErrors{}, fmt.Errorf("write configuration: %w", err)
		}
		// -x: it never touches the machine's clock.
		if err := cs.start(ctx, dir, name, "chronyd", "-x", "-d", "-u", "root", "-f", config); err != nil {
			return daemonErrors{}, err
		}
	}
	return sample(ctx, len(w.names)-1, length, func(i int) (offset float64, at int64, err error) {
		t, err := clockstate.ReadChrony(ctx, sockets[i+1])
		if err != nil {
			return 0, 0, err
		}
		if !t.Synchronised() {
			return 0, 0, fmt.Errorf("read chronyd of node %d: it follows nobody", i+1)
		}
		return t.Correction * 1e9, time.Now().UnixNano(), nil
	})
}

// runPTP measures ptp4l with software stamps: the first node is the master.
func runPTP(ctx context.Context, w *network, dir string, interval int, length time.Duration) (daemonErrors, error) {
	cs := &children{}
	defer cs.stop()
	sockets := make([]string, len(w.names))
	for i, name := range w.names {
		sockets[i] = filepath.Join(dir, fmt.Sprintf("ptp4l-%d", i))
		config := sockets[i] + ".conf"
		content := fmt.Sprintf(`[global]
time_stamping software
free_running 1
priority1 %d
uds_address %s
logSyncInterval %d
logMinDelayReqInterval %d
logAnnounceInterval 0
tx_timestamp_timeout 100
[eth0]
`, 100+i, sockets[i], interval, interval)
		if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
			return daemonErrors{}, fmt.Errorf("write configuration: %w", err)
		}
		if err := cs.start(ctx, dir, name, "ptp4l", "-4", "-m", "-q", "-f", config); err != nil {
			return daemonErrors{}, err
		}
	}
	return sample(ctx, len(w.names)-1, length, func(i int) (offset float64, at int64, err error) {
		s, err := clockstate.ReadPTP(ctx, sockets[i+1], 0)
		if err != nil {
			return 0, 0, err
		}
		if !s.Present || !s.Follows {
			return 0, 0, fmt.Errorf("read ptp4l of node %d: it follows nobody", i+1)
		}
		return float64(s.Offset), s.Ingress, nil
	})
}

// sample asks n daemons for their offset until length is over, ten times a second;
// at tells offsets apart.
func sample(ctx context.Context, n int, length time.Duration, ask func(i int) (offset float64, at int64, err error)) (daemonErrors, error) {
	if err := wait(ctx, settle); err != nil {
		return daemonErrors{}, err
	}
	const window = 20 // samples, 2 s
	var d daemonErrors
	last, recent := make([]int64, n), make([][]float64, n)
	until := time.Now().Add(patience)
	for i := range n {
		if _, _, _, err := d.ask(ctx, i, until, ask); err != nil {
			return daemonErrors{}, err
		}
	}
	d.asked, d.failed = 0, 0
	for end := time.Now().Add(length); time.Now().Before(end); {
		for i := range n {
			offset, at, ok, err := d.ask(ctx, i, time.Time{}, ask)
			if err != nil {
				return daemonErrors{}, err
			}
			if !ok || at == last[i] {
				continue
			}
			last[i] = at
			d.each.add(offset)
			if recent[i] = append(recent[i], offset); len(recent[i]) == window {
				slices.Sort(recent[i])
				d.windows.add(stats.Median(recent[i]))
				recent[i] = nil
			}
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return daemonErrors{}, err
		}
	}
	if float64(d.failed) > mostFailed*float64(d.asked) {
		return d, fmt.Errorf("sample daemons: got no answer to %d of %d questions; want most: %w", d.failed, d.asked, d.last)
	}
	return d, nil
}

// wait returns early, with an error, where the lab is interrupted.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", ctx.Err())
	case <-time.After(d):
		return nil
	}
}
