// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Method names stragglers from the operations of all ranks, step by step.
type Method interface {
	// Begin starts a job of these ranks, by rank.
	Begin(ranks []model.Rank)
	// Add takes the operations of one rank in the present step, that of kind step
	// last. They are valid until it returns. A missing rank is not added.
	Add(rank int, ops []model.Op)
	// Close ends the step.
	Close(step int64)
	// Named returns whom the method names after the steps so far, the strongest
	// first, those included that it no longer confirms.
	Named() []Accusation
	// End returns the same after the last step, and after those named whom else the
	// method would look at first: not decided.
	End() []Accusation
}

// Accusation is one finding of a method, as far as it has such a thing.
type Accusation struct {
	ID      string // the same over the steps of a job
	Decided bool   // false: a suspect that was not named
	// Class and Cause are "" where the method knows none.
	Class, Cause string
	// Ranks are those at fault; of a link, its sender; of an imbalance, those concerned.
	Ranks []int64
	Peer  model.Optional[int64] // of a link
	Host  string                // of class node
	// Comm is the communicator of a link. Group: no end of it is told, Ranks are its members.
	Comm  string
	Group bool
	Op    string
	Score float64
	// Confidence and Cost are not known of methods that give none.
	Confidence model.Optional[float64] // 0 to 1
	CostShare  model.Optional[float64] // of the step
	// First and Last are the steps that it speaks of; unknown where nothing is said.
	First, Last model.Optional[int64]
	Candidates  []int64 // that the evidence does not tell from Ranks
	Evidence    string  // JSON, "" where there is none
}

// Names of the methods, in the order in which they are printed.
const (
	Lockstep           = "lockstep"
	KAIR               = "kair"
	KAIRPlus           = "kair+"
	LatestStart        = "latest-start"
	ShortestCollective = "shortest-coll"
	MedianRatio        = "median-ratio"
)

// About says what a method can be scored on.
type About struct {
	Name string
	// Abstains: it may name nobody.
	Abstains bool
	// Classes: it tells classes apart; else it is scored on whom alone.
	Classes bool
	new     func() Method
}

// All are the methods, in order.
var All = []About{
	{Name: Lockstep, Abstains: true, Classes: true, new: newEngine},
	{Name: KAIR, Abstains: true, Classes: true, new: newKAIR},
	{Name: KAIRPlus, Abstains: true, Classes: true, new: newKAIRPlus},
	{Name: LatestStart, new: newLatestStart},
	{Name: ShortestCollective, Abstains: true, new: newShortestCollective},
	{Name: MedianRatio, Abstains: true, new: newMedianRatio},
}

// New returns a fresh instance for one job.
func (a *About) New() Method { return a.new() }

// Select returns the methods of a comma-separated list, "" for all.
func Select(list string) ([]About, error) {
	if list == "" {
		return All, nil
	}
	var out []About
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(All, func(a About) bool { return a.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("select method: got %q; want one of %s", name, strings.Join(names(), ", "))
		}
		out = append(out, All[i])
	}
	return out, nil
}

func names() (out []string) {
	for _, a := range All {
		out = append(out, a.Name)
	}
	return out
}

// maxSuspects is how many that are not named a method may list as its candidates.
const maxSuspects = 5

// strongest returns the indices of the largest values above zero, at most n, ties by
// index.
func strongest(values []float64, n int) []int {
	var top []int
	for i, v := range values {
		if v <= 0 {
			continue
		}
		at := len(top)
		for at > 0 && values[top[at-1]] < v {
			at--
		}
		if at >= n {
			continue
		}
		top = slices.Insert(top, at, i)
		top = top[:min(len(top), n)]
	}
	return top
}
