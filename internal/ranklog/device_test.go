// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

const illegal = "CUDA error: an illegal memory access was encountered"

// watchdogEnds are the lines by which versions of the watchdog report that an error ended it.
var watchdogEnds = map[string]func(rank int64, at, e string) string{
	"1.13": func(r int64, _, e string) string {
		return fmt.Sprintf("[E ProcessGroupNCCL.cpp:916] [Rank %d] NCCL watchdog thread terminated with exception: %s\n", r, e)
	},
	"2.3": func(r int64, _, e string) string {
		return fmt.Sprintf("[rank%d]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank %d] Process group watchdog thread terminated with exception: %s\n", r, r, e)
	},
	"2.14": func(r int64, at, e string) string {
		return fmt.Sprintf("[rank%d]:[E1116 %s ProcessGroupNCCL.cpp:2068] [PG ID 0 PG GUID 0(default_pg) Rank %d] Process group watchdog thread terminated with exception: %s\n", r, at, r, e)
	},
	"what, alone": func(r int64, _, e string) string {
		return fmt.Sprintf("terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG ID 0 PG GUID 0(default_pg) Rank %d] Process group watchdog thread terminated with exception: %s\n", r, e)
	},
}

// An error of the device that the watchdog reports is the end of its rank, also in a log of all ranks.
func TestJudge_DeviceErrorOfTheWatchdog_IsAnOwnCause(t *testing.T) {
	for version, write := range watchdogEnds {
		for _, e := range []string{illegal, "HIP error: an illegal memory access was encountered", "CUDA error: uncorrectable NVLink error detected during the execution", "CUDA error: unspecified launch failure"} {
			t.Run(version+" "+e, func(t *testing.T) {
				end := write(5, "10:00:00.1", e)
				f := assertRoot(t, files(versions["2.14"], 8, map[int64]string{5: end}).judge(t, Options{WorldSize: 8}), 5, model.ClassProcessDead, "all_reduce 41")
				assert.Contains(t, evidence.Encode(f.Evidence), e)

				remote := write(2, "10:00:01.1", "NCCL error: remote process exited or there was a network error, NCCL version 2.21.5")
				r := files(versions["2.14"], 8, map[int64]string{5: end, 2: remote}).judge(t, Options{WorldSize: 8})
				require.NotEmpty(t, r.Roots)
				ranks, _ := named(r)
				assert.Equal(t, []int64{5}, ranks, "the other error is a result")

				var all strings.Builder
				for r := range int64(8) {
					if r != 5 {
						all.WriteString(versions[map[bool]string{true: "2.14", false: "2.1"}[strings.HasPrefix(end, "[rank")]](inDefault(r)))
					}
				}
				f = assertRoot(t, logs{"job.out": end + all.String()}.judge(t, Options{WorldSize: 8}), 5, model.ClassProcessDead, "all_reduce 41")
				assert.Contains(t, evidence.Encode(f.Evidence), e)
			})
		}
	}
}

// Of several ranks whose watchdogs report such an error the earliest is the cause.
func TestJudge_DeviceErrorsOfSeveralRanks_TheEarliestIsTheCause(t *testing.T) {
	last := watchdogEnds["2.14"]
	for name, c := range map[string]struct {
		at   map[int64]string
		want []int64
	}{
		"by seconds":         {map[int64]string{6: "10:00:00.1", 1: "10:00:04.1", 3: "10:00:09.0"}, []int64{6}},
		"over an hour":       {map[int64]string{6: "09:59:58.1", 1: "10:00:04.1"}, []int64{6}},
		"of one moment":      {map[int64]string{6: "10:00:00.1", 1: "10:00:00.4"}, []int64{1, 6}},
		"of two time zones":  {map[int64]string{6: "02:00:00.1", 1: "10:00:04.1"}, []int64{1, 6}},
		"the last is a rank": {map[int64]string{6: "10:00:30.1", 1: "10:00:04.1", 3: "10:00:09.0"}, []int64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			absent := map[int64]string{}
			for r, at := range c.at {
				absent[r] = last(r, at, illegal)
			}
			ranks, _ := named(files(versions["2.14"], 8, absent).judge(t, Options{WorldSize: 8}))
			assert.Equal(t, c.want, ranks)
		})
	}
	// In one log the lines are in order, however often each rank reports it.
	job := ""
	for r := range int64(8) {
		job += fmt.Sprintf("[rank%d]: step 40\n", r)
	}
	job += last(6, "10:00:00.1", illegal) + last(1, "10:00:00.1", illegal) + last(1, "10:00:00.2", illegal) + last(6, "10:00:00.3", illegal)
	for r := range int64(8) {
		if r != 1 && r != 6 {
			job += versions["2.14"](inDefault(r))
		}
	}
	ranks, _ := named(logs{"job.out": job}.judge(t, Options{WorldSize: 8}))
	assert.Equal(t, []int64{6}, ranks)
}

// A rank in a group of some ranks is not that of the job.
func TestJudge_DeviceErrorInASubgroup_AccusesNoOther(t *testing.T) {
	job := "[E ProcessGroupNCCL.cpp:2068] [PG ID 2 PG GUID 3(tp) Rank 1] Process group watchdog thread terminated with exception: " + illegal + "\n"
	for r := range int64(8) {
		if r != 5 {
			job += versions["2.14"](inDefault(r))
		}
	}
	r := logs{"job.out": job}.judge(t, Options{WorldSize: 8})
	ranks, _ := named(r)
	assert.NotContains(t, ranks, int64(1))
}
