// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// ringFed says what feeds a ring, and how CUPTI came off where it was asked for.
func ringFed(r *ring.Ring) string {
	var parts []string
	if names := witnessNames(r); len(names) > 0 {
		parts = append(parts, "fed by "+strings.Join(names, ", "))
	}
	if words := cuptiWords(r); words != "" {
		parts = append(parts, words)
	}
	return strings.Join(parts, "; ")
}

// witnessNames are the witnesses by name, NCCL's with the version of its interface.
func witnessNames(r *ring.Ring) []string {
	names := r.Witnesses().Names()
	abi := uint32(0)
	for _, c := range r.Comms(nil) {
		abi = max(abi, c.ABI)
	}
	for i, name := range names {
		if name == ring.WitnessNCCL.String() && abi > 0 {
			names[i] = fmt.Sprintf("%s v%d", name, abi)
		}
	}
	return names
}

var cuptiStates = map[ring.CUPTIState]string{
	ring.CUPTIActive:    "CUPTI delivers kernels",
	ring.CUPTIYielded:   "CUPTI was left to another client, so that no kernels are recorded",
	ring.CUPTINoLibrary: "CUPTI was asked for, and no libcupti was found",
	ring.CUPTIRefused:   "CUPTI was asked for and refused",
	ring.CUPTIPaused:    "CUPTI was paused by the program",
}

// cuptiWords say how CUPTI came off; nothing where nobody asked for it.
func cuptiWords(r *ring.Ring) string {
	state, result := r.CUPTI()
	if state == ring.CUPTIUnasked {
		return ""
	}
	words := cuptiStates[state]
	if words == "" {
		words = "CUPTI: " + state.String()
	}
	if result != 0 {
		words += fmt.Sprintf(" (its result %d)", result)
	}
	return words
}

// ringScope is where a thread of the process is.
type ringScope struct {
	Thread uint64 `json:"thread"`
	Name   string `json:"name"`
	Phase  string `json:"phase"`
	Depth  uint16 `json:"depth"`
	Since  uint64 `json:"since_ns"`
	For    uint64 `json:"for_ns"`
}

// ringScopes lists in which scope each thread is, up to now, or up to the last sign of
// life of a process that ended; the longest first.
func ringScopes(r *ring.Ring, until uint64) []ringScope {
	var out []ringScope
	for _, s := range r.OpenScopes(nil) {
		name := r.String(s.Name)
		if name == "" {
			name = "unknown"
		}
		out = append(out, ringScope{
			Thread: s.TID, Name: name, Phase: s.Phase.String(), Depth: s.Depth, Since: s.Since, For: uint64(age(until, s.Since)),
		})
	}
	slices.SortFunc(out, func(a, b ringScope) int { return cmp.Or(cmp.Compare(b.For, a.For), cmp.Compare(a.Thread, b.Thread)) })
	return out
}

// showScopes prints where the threads are.
func showScopes(w io.Writer, r *ring.Ring, until uint64) {
	h := r.Header()
	for _, s := range ringScopes(r, until) {
		who := fmt.Sprintf("thread %d", s.Thread)
		if s.Thread == h.PID {
			who = "the main thread"
		}
		_, _ = fmt.Fprintf(w, "  %s is in %s for %v\n", who, s.Name, time.Duration(s.For))
	}
}
