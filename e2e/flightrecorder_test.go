// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hangRanks is how many ranks of hang.py run, hangStuck which of them stops taking part.
const (
	hangRanks = 4
	hangStuck = 2
)

// A job of PyTorch hangs because one rank does not come. Its dumps, which PyTorch itself
// writes or serves, name that rank.
func TestTorchFlightRecorder(t *testing.T) {
	t.Parallel()
	python := torchPython(t)
	t.Run("files", func(t *testing.T) {
		dumps := t.TempDir()
		c := collectDumps(t, dumps, nil)
		ranks := startHang(t, python, freePorts(t, hangRanks), map[string]string{
			"TORCH_FR_DUMP_TEMP_FILE": filepath.Join(dumps, "comm_lib_trace_rank_"), "DUMP_AFTER": "3",
		})
		c.names(t, hangStuck, ranks)
	})
	t.Run("servers", func(t *testing.T) {
		ports := freePorts(t, hangRanks)
		c := collectDumps(t, t.TempDir(), ports)
		found := c.names(t, hangStuck, startHang(t, python, ports, nil))
		stack, _, _ := strings.Cut(found["lockstep.finding.stack"], "\n")
		require.Contains(t, stack, "e2e/testdata/torch/hang.py:", "where its host is: it is in no operation")
	})
}

// dumpCollector is otelcol-lockstep that gathers dumps.
type dumpCollector struct {
	*process
	findings string
}

func collectDumps(t *testing.T, dumps string, servers []string) *dumpCollector {
	t.Helper()
	var endpoints []string
	for rank, address := range servers {
		endpoints = append(endpoints, fmt.Sprintf(`{url: "http://%s", ranks: ["%d"]}`, address, rank))
	}
	health := freePorts(t, 1)[0]
	c := &dumpCollector{findings: filepath.Join(t.TempDir(), "findings.jsonl")}
	c.process = start(t, map[string]string{
		"DUMPS": dumps, "ENDPOINTS": "[" + strings.Join(endpoints, ", ") + "]", "FINDINGS": c.findings, "HEALTH": health,
	}, built(t, "otelcol-lockstep"), "--config", filepath.Join("e2e", "testdata", "flight_recorder.yaml"))
	eventually(t, readyLimit, func() error {
		_, err := get("http://" + health + "/")
		return err
	}, c.process)
	return c
}

// names waits until the rank is named, and checks that no other is.
func (c *dumpCollector) names(t *testing.T, rank int, ranks []*process) (last map[string]string) {
	t.Helper()
	eventually(t, 3*time.Minute, func() error {
		found, err := findingsIn(c.findings)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		for _, f := range found {
			require.Equal(t, []string{"desync", "not_scheduled", strconv.Itoa(rank)},
				[]string{f["lockstep.finding.kind"], f["lockstep.finding.class"], f["lockstep.finding.rank"]}, "%v", f)
			last = f
		}
		if len(found) == 0 {
			return errors.New("find who holds up the others: got no finding")
		}
		return nil
	}, append(ranks, c.process)...)
	return last
}

func startHang(t *testing.T, python string, ports []string, env map[string]string) []*process {
	t.Helper()
	numbers := make([]string, len(ports))
	for i, address := range ports {
		var err error
		_, numbers[i], err = net.SplitHostPort(address)
		require.NoError(t, err)
	}
	store := strings.TrimPrefix(freePorts(t, 1)[0], "127.0.0.1:")
	all := make([]*process, hangRanks)
	for rank := range all {
		of := map[string]string{
			"RANK": strconv.Itoa(rank), "WORLD_SIZE": strconv.Itoa(hangRanks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": store,
			"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PORTS": strings.Join(numbers, ","), "STUCK": strconv.Itoa(hangStuck),
		}
		for name, value := range env {
			of[name] = value
		}
		all[rank] = start(t, of, python, filepath.Join("e2e", "testdata", "torch", "hang.py"))
	}
	return all
}
