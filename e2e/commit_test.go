// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leaver is a rank that recovers, and is gone before it saves.
const leaver = `
import sys
from lockstep_scope.commit import Committer
with Committer("job", "rank " + sys.argv[1], 3, sys.argv[2]) as committer:
    print("recovered", committer.recover(60).epoch, flush=True)
`

// committing starts the ranks of a job that recovers and saves so often.
func committing(t *testing.T, gateway, folder, run string, saves int, ranks ...int) (list []*process) {
	t.Helper()
	for _, rank := range ranks {
		list = append(list, start(t, commitEnv(gateway), "python3", "-B", filepath.Join("inject", "python", "testdata", "committing.py"),
			fmt.Sprint(rank), "3", folder, run, fmt.Sprint(saves)))
	}
	return list
}

func commitEnv(gateway string) map[string]string {
	return map[string]string{"PYTHONPATH": filepath.Join("inject", "python"), "LOCKSTEP_COMMIT_URL": "http://" + gateway, "LOCKSTEP_COMMIT_TOKEN": commitToken}
}

func requireDone(t *testing.T, ranks []*process, want ...string) {
	t.Helper()
	for _, p := range ranks {
		select {
		case <-p.done:
		case <-time.After(answerLimit):
			t.Fatalf("%s goes on: %s", p.name, p.output.String())
		}
		require.NoError(t, p.err, p.output.String())
		for _, w := range want {
			require.Contains(t, p.output.String(), w)
		}
	}
}

// TestCommit: real processes commit their saves by a real collector, which is killed with SIGKILL and
// begun again in the midst. What they confirmed is the frontier, and a span; a save of which one rank
// has no part is partial, until the job has recovered without it.
func TestCommit(t *testing.T) {
	t.Parallel()
	gateway, folder, spans := freePorts(t, 1)[0], t.TempDir(), filepath.Join(t.TempDir(), "spans.jsonl")
	env := map[string]string{
		"LOCKSTEP_COMMIT_ENDPOINT": gateway, "LOCKSTEP_SETTLE": "3s", "LOCKSTEP_HEARTBEAT": "1s", "LOCKSTEP_SPANS": spans,
		"LOCKSTEP_EVENTS": filepath.Join(t.TempDir(), "events.jsonl"),
	}
	c := startCollector(t, "commits.yaml", env)
	frontier := func(want int) {
		t.Helper()
		eventually(t, answerLimit, func() error {
			page, err := get("http://" + c.prometheus + "/metrics")
			if line := fmt.Sprintf(`lockstep_epoch_frontier{lockstep_job_id="job"} %d`, want); err == nil && !strings.Contains(string(page), line) {
				err = fmt.Errorf("find %q: got\n%s", line, page)
			}
			return err
		}, c.process)
	}
	stranger := commitEnv(gateway)
	stranger["LOCKSTEP_COMMIT_TOKEN"] = "guessed"
	out := start(t, stranger, "python3", "-B", "-c", leaver, "0", t.TempDir())
	<-out.done
	require.Contains(t, out.output.String(), "Refused: ask http://"+gateway+"/v1/commit: status 401: ")
	requireDone(t, committing(t, gateway, folder, "first", 2, 0, 1, 2), "recovered 0", "committed 10", "committed 20")
	frontier(20)
	ranks := committing(t, gateway, folder, "second", 30, 0, 1, 2)
	eventually(t, answerLimit, func() error {
		if out := ranks[0].output.String(); !strings.Contains(out, "committed 40") {
			return errors.New("find two saves: got " + out)
		}
		return nil
	}, ranks[0])
	require.NoError(t, c.cmd.Process.Kill())
	<-c.done
	c = startCollector(t, "commits.yaml", env)
	requireDone(t, ranks, "recovered 20 first 20 end", "committed 320")
	frontier(320)

	gone := start(t, commitEnv(gateway), "python3", "-B", "-c", leaver, "2", folder)
	ranks = committing(t, gateway, folder, "third", 1, 0, 1)
	requireDone(t, []*process{gone}, "recovered 320")
	f := awaitFinding(t, c, "open")
	t.Log(f)
	require.Equal(t, []string{"epoch", "partial", "save 330", "job"}, []string{
		f["lockstep.finding.kind"], f["lockstep.finding.class"], f["lockstep.finding.op"], f["lockstep.job.id"],
	})
	require.Contains(t, f["lockstep.finding.evidence"], `{"domain":"part rank 2","state":"absent"}`)
	frontier(320)
	for _, p := range ranks {
		require.NoError(t, p.cmd.Process.Kill())
		<-p.done
	}
	requireDone(t, committing(t, gateway, folder, "fourth", 1, 0, 1, 2), "recovered 320 second 320 end", "committed 330")
	frontier(330)
	awaitFinding(t, c, "closed")
	eventually(t, answerLimit, func() error { // the only save that was seen before it was whole
		text, err := os.ReadFile(spans)
		if n := strings.Count(string(text), `"name":"checkpoint save"`); err == nil && n != 1 {
			err = fmt.Errorf("find the span of one save: got %s", text)
		}
		return err
	}, c.process)

	conn, err := net.Dial("tcp", gateway) // one that says nothing holds up no end
	require.NoError(t, err)
	require.Zero(t, c.terminate(t, stopLimit))
	require.NoError(t, conn.Close())
}

func awaitFinding(t *testing.T, c *collector, status string) (found finding) {
	t.Helper()
	eventually(t, answerLimit, func() error {
		all, err := findingsIn(c.findings)
		for _, f := range all {
			if f["lockstep.finding.status"] == status {
				found = f
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("find one that is %s in %s: got %v", status, c.findings, all))
	}, c.process)
	return found
}
