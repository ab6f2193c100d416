// SPDX-License-Identifier: Apache-2.0

package part

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ncclShown is one line of `lockstep rings --json`.
type ncclShown struct {
	Rank *int32 `json:"rank"`
	Life string `json:"life"`
	Open []struct {
		Name   string `json:"name"`
		State  string `json:"state"`
		For    uint64 `json:"for_ns"`
		Detail struct {
			Bytes uint64 `json:"bytes"`
		} `json:"detail"`
	} `json:"open"`
}

func parseShown(out string) ([]ncclShown, error) {
	var list []ncclShown
	for line := range strings.Lines(out) {
		var s ncclShown
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			return nil, fmt.Errorf("read rings: %w", err)
		}
		list = append(list, s)
	}
	return list, nil
}

// compareOpen tests that every rank but the last has just the operation open that the
// ranks began, and the last has none.
func compareOpen(shown []ncclShown, truths []*ncclTruth) (problems []string) {
	for _, t := range truths {
		at := slices.IndexFunc(shown, func(s ncclShown) bool { return s.Rank != nil && int(*s.Rank) == t.Rank })
		if at < 0 {
			problems = append(problems, fmt.Sprintf("rank %d: got no line", t.Rank))
			continue
		}
		open := shown[at].Open
		ops := t.only(ncclOpen)
		switch {
		case t.Rank == t.LateRank && len(open) != 0:
			problems = append(problems, fmt.Sprintf("rank %d, which sleeps: got %s open; want nothing", t.Rank, open[0].Name))
		case t.Rank == t.LateRank:
		case len(open) != 1 || len(ops) != 1:
			problems = append(problems, fmt.Sprintf("rank %d: got %d operations open, of %d begun; want one", t.Rank, len(open), len(ops)))
		case open[0].Name != ops[0].Function || open[0].Detail.Bytes != ops[0].Bytes:
			problems = append(problems, fmt.Sprintf("rank %d: got %s of %d bytes open; want %v", t.Rank, open[0].Name, open[0].Detail.Bytes, &ops[0]))
		case open[0].State != "enqueued" && open[0].State != "started":
			problems = append(problems, fmt.Sprintf("rank %d: got state %s; want enqueued or started", t.Rank, open[0].State))
		}
	}
	return problems
}
