// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestSentence_OfAStoppedProcess(t *testing.T) {
	for text, want := range map[string]string{
		`{"process":"stopped","pid":4711,"held_seconds":12.3}`: "rank 1 on nodea: desync (process_stopped): its process 4711 is stopped by a signal (SIGSTOP or another), for 12 s; 3 ranks wait for it (confidence 0.99)",
		`{"process":"traced","held_seconds":2}`:                "rank 1 on nodea: desync (process_stopped): its process is stopped by a debugger, for 2 s; 3 ranks wait for it (confidence 0.99)",
		`{"process":"frozen","pid":7,"held_seconds":61}`:       "rank 1 on nodea: desync (process_stopped): its process 7 is frozen with its cgroup, for 61 s; 3 ranks wait for it (confidence 0.99)",
	} {
		f := model.Finding{
			Kind: model.FindingDesync, Class: model.ClassProcessStopped, Rank: model.Some(int64(1)), Host: "nodea", Evidence: evidence.Text(text),
			Waiting: []int64{0, 2, 3}, Confidence: 0.99, Status: model.StatusOpen,
		}
		assert.Equal(t, want, Sentence(&f))
	}
	closed := model.Finding{
		Kind: model.FindingDesync, Class: model.ClassProcessStopped, Rank: model.Some(int64(1)), Status: model.StatusClosed,
		Evidence: evidence.Text(`{"process":"stopped","pid":4711,"held_seconds":12}`),
	}
	assert.Contains(t, Sentence(&closed), "its process 4711 was stopped by a signal (SIGSTOP or another) for 12 s")
}

func TestSentence_ByLaunches_NamesProcessesAndCounts(t *testing.T) {
	f := model.Finding{
		Kind: model.FindingDesync, Class: model.ClassNotScheduled, Op: "AllGather 641", CommID: "0xfa", RanksCount: model.Some(int64(1)), Host: "10.0.0.1",
		WaitingCount: model.Some(int64(7)), Confidence: 0.4,
		Evidence: evidence.Text(`{"processes":["rank 2 of it: process 3002 on 10.0.0.1, GPU 2"],"launched":"AllGather: 7 ranks launched 641, rank 2 640"}`),
	}
	assert.True(t, strings.HasPrefix(Sentence(&f), "a process on 10.0.0.1: desync (not_scheduled): "), Sentence(&f))
	assert.Contains(t, Sentence(&f), "has not entered AllGather 641 of 0xfa (rank 2 of it: process 3002 on 10.0.0.1, GPU 2); AllGather: 7 ranks launched 641, rank 2 640; 7 ranks wait for it")
	f.Evidence = evidence.Text(`{"processes":["a","b","c","d","e"]}`)
	assert.Contains(t, Sentence(&f), "(a; b; c; d, and 1 more)")
}
