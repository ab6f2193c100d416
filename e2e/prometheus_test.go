// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// prometheus is a real one that scrapes one target.
type prometheus struct {
	*process
	base string
}

func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	program := packaged(t, "prometheus")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: lockstep
    static_configs:
      - targets: [%q]
`, target), 0o600))
	address := freePorts(t, 1)[0]
	p := &prometheus{base: "http://" + address}
	p.process = start(t, nil, program,
		"--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address)
	eventually(t, readyLimit, func() error {
		_, err := get(p.base + "/-/ready")
		return err
	}, p.process)
	return p
}

// series is one element of an instant vector.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"` // time, and the value as a string
}

func (p *prometheus) query(expression string) ([]series, error) {
	var answer struct {
		Data struct {
			Type   string   `json:"resultType"`
			Result []series `json:"result"`
		} `json:"data"`
	}
	query := url.Values{"query": {expression}}
	if err := getJSON(p.base+"/api/v1/query?"+query.Encode(), &answer); err != nil {
		return nil, err
	}
	if answer.Data.Type != "vector" {
		return nil, fmt.Errorf("query %s: got a %s; want a vector", expression, answer.Data.Type)
	}
	return answer.Data.Result, nil
}
