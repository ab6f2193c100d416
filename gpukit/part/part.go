// SPDX-License-Identifier: Apache-2.0

// Package part holds the parts of the GPU kit. Each runs programs on the machine,
// compares what Lockstep recorded with what the program wrote down of itself, and
// adds checks to the report. Without a GPU it does so on its stand-in.
package part

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// Part is one part of the kit.
type Part struct {
	Name  string // one word
	Title string
	Limit time.Duration
	// Loopback: its processes meet over the loopback interface.
	Loopback bool
	// Run adds checks as results come. It returns when ctx is done.
	Run func(ctx context.Context, k *kit.Kit, p *report.Part)
}

// All returns the parts in the order in which they run: what matters most, first,
// since all of them share one time limit.
func All() []Part {
	return []Part{demoPart(), nodePart(), cuptiPart(), ncclPart(), ranksPart(), hangsPart()}
}

// Do runs the part within its limit. Whatever it does, Do returns within a few
// seconds after the limit, and what the part added until then is kept.
func (a Part) Do(ctx context.Context, k *kit.Kit) *report.Part {
	p := report.NewPart(a.Name, a.Title, a.Limit)
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, a.Limit)
	defer cancel()
	own, err := k.With(a.Name)
	if err != nil {
		p.Add("start", report.Failed, err.Error())
		p.Close(time.Since(began))
		return p
	}
	if a.Loopback && !loopback() {
		p.Add("start", report.NotShown, "the loopback interface is down, over which processes of this part meet: ip link set lo up")
		p.Close(time.Since(began))
		return p
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				p.Add("end", report.Failed, fmt.Sprintf("the part panicked: %v: %s", r, debug.Stack()))
			}
		}()
		a.Run(ctx, own, p)
	}()
	select {
	case <-done:
	case <-after(ctx, lateness):
		p.Addf("end", report.Failed, "got no end within %v; want less", a.Limit)
	}
	p.Close(time.Since(began))
	return p
}

// loopback reports whether a loopback interface is up. Where that cannot be found out,
// the part finds it out.
func loopback() bool {
	all, err := net.Interfaces()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(all, func(i net.Interface) bool {
		return i.Flags&(net.FlagLoopback|net.FlagUp) == net.FlagLoopback|net.FlagUp
	})
}

// lateness is how long a part has to clean up after its limit.
const lateness = 5 * time.Second

// after returns a channel that is closed d after ctx is done.
func after(ctx context.Context, d time.Duration) <-chan struct{} {
	late := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { close(late) }) })
	return late
}
