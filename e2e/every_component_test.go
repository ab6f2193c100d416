// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// notStarted has each component that everyComponent leaves out, and why.
var notStarted = map[string]string{
	"receivers/journald": "runs journalctl, which is not on a machine without systemd",
}

// The signals in the order in which a pipeline for a component is chosen.
var signals = []string{"traces", "metrics", "logs"}

// listed is one component in the output of `components`.
type listed struct {
	Name      string            `yaml:"name"`
	Stability map[string]string `yaml:"stability"`
}

var sectionNames = []string{"receivers", "processors", "exporters", "connectors", "extensions"}

// Every component that a collector lists starts once, also under the name that it had
// before, with fakes for the API servers that some ask at their start.
func TestEveryComponent_Started(t *testing.T) {
	for _, name := range []string{"otelcol-lockstep", "otelcol-lockstep-agent"} {
		t.Run(name, func(t *testing.T) { startEvery(t, built(t, name)) })
	}
}

func startEvery(t *testing.T, program string) {
	t.Helper()
	components := listComponents(t, program)
	config := readConfig(t, filepath.Join("testdata", "every", "components.yaml"))
	for _, section := range sectionNames {
		for _, c := range components[section] {
			_, configured := config[section][c.Name]
			_, excused := notStarted[section+"/"+c.Name]
			assert.NotEqual(t, configured, excused, "%s/%s: got configured %t, excused %t; want one of them", section, c.Name, configured, excused)
		}
		// What only the other collector holds.
		maps.DeleteFunc(config[section], func(id string, _ any) bool { return !lists(components[section], id) })
	}
	if !lists(components["extensions"], "headers_setter") {
		withoutAuthenticators(config["exporters"])
	}

	path := filepath.Join(t.TempDir(), "config.yaml")
	text, err := yaml.Marshal(withPipelines(t, config, components))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	env := everyEnvironment(t)
	collector := start(t, env, program, "--config", path)
	eventually(t, readyLimit, func() error {
		_, err := get("http://" + env["HEALTH"] + "/")
		return err
	}, collector)
	// It handles signals some instructions after it is ready, and nothing outside tells when.
	time.Sleep(200 * time.Millisecond)
	assert.Zero(t, collector.terminate(t, stopLimit))
}

// withoutAuthenticators removes what the exporters' settings need extensions for.
func withoutAuthenticators(exporters map[string]any) {
	for _, settings := range exporters {
		if settings, ok := settings.(map[string]any); ok {
			delete(settings, "auth")
		}
	}
}

// document is a collector's configuration: section, component id, its settings.
type document map[string]map[string]any

func readConfig(t *testing.T, path string) document {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var config document
	require.NoError(t, yaml.Unmarshal(text, &config))
	return config
}

func listComponents(t *testing.T, program string) map[string][]listed {
	t.Helper()
	var all map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(run(t, program, "components")), &all))
	components := map[string][]listed{}
	for _, section := range sectionNames {
		text, err := yaml.Marshal(all[section])
		require.NoError(t, err)
		var list []listed
		require.NoError(t, yaml.Unmarshal(text, &list))
		components[section] = list
	}
	return components
}

// pipeline is one entry of service::pipelines.
type pipeline struct {
	Receivers  []string `yaml:"receivers"`
	Processors []string `yaml:"processors,omitempty"`
	Exporters  []string `yaml:"exporters"`
}

// withPipelines adds a pipeline for each component of config.
func withPipelines(t *testing.T, config document, components map[string][]listed) map[string]any {
	t.Helper()
	pipelines := map[string]pipeline{}
	add := func(signal, id string, p pipeline) {
		pipelines[signal+"/"+strings.ReplaceAll(id, "/", "_")] = p
	}
	for id := range config["receivers"] {
		add(signalOf(t, components["receivers"], id), "receiver-"+id, pipeline{Receivers: []string{id}, Exporters: []string{"debug"}})
	}
	for id := range config["processors"] {
		add(signalOf(t, components["processors"], id), "processor-"+id,
			pipeline{Receivers: []string{"otlp"}, Processors: []string{id}, Exporters: []string{"debug"}})
	}
	for id := range config["exporters"] {
		add(signalOf(t, components["exporters"], id), "exporter-"+id, pipeline{Receivers: []string{"otlp"}, Exporters: []string{id}})
	}
	for id := range config["connectors"] {
		from, to := pairOf(t, components["connectors"], id)
		add(from, "into-"+id, pipeline{Receivers: []string{"otlp"}, Exporters: []string{id}})
		add(to, "out-of-"+id, pipeline{Receivers: []string{id}, Exporters: []string{"debug"}})
	}
	extensions := []string{}
	for id := range config["extensions"] {
		extensions = append(extensions, id)
	}
	slices.Sort(extensions)
	all := map[string]any{"service": map[string]any{
		"extensions": extensions,
		"pipelines":  pipelines,
		"telemetry":  map[string]any{"metrics": map[string]any{"level": "none"}},
	}}
	for section, ids := range config {
		all[section] = ids
	}
	return all
}

// renamed has the deprecated types of components.yaml.
var renamed = map[string]string{
	"otlpjsonfile": "otlp_json_file", "filelog": "file_log", "hostmetrics": "host_metrics",
	"kubeletstats": "kubelet_stats", "k8sattributes": "k8s_attributes", "resourcedetection": "resource_detection",
	"otlp": "otlp_grpc", "otlphttp": "otlp_http", "prometheusremotewrite": "prometheus_remote_write",
	"loadbalancing": "load_balancing", "servicegraph": "service_graph", "spanmetrics": "span_metrics",
}

// indexOf returns the place of a component id in a list, -1 where it is not there.
func indexOf(list []listed, id string) int {
	name, instance, _ := strings.Cut(id, "/")
	if instance == "old" {
		name = renamed[name]
	}
	return slices.IndexFunc(list, func(c listed) bool { return c.Name == name })
}

func lists(list []listed, id string) bool { return indexOf(list, id) >= 0 }

func find(t *testing.T, list []listed, id string) listed {
	t.Helper()
	i := indexOf(list, id)
	require.GreaterOrEqual(t, i, 0, "%s is not listed", id)
	return list[i]
}

// signalOf returns a signal that a component supports.
func signalOf(t *testing.T, list []listed, id string) string {
	t.Helper()
	c := find(t, list, id)
	for _, signal := range signals {
		if supports(c, signal) {
			return signal
		}
	}
	require.Fail(t, "no signal", "%s: %v", id, c.Stability)
	return ""
}

// pairOf returns the signals that a connector takes and gives.
func pairOf(t *testing.T, list []listed, id string) (string, string) {
	t.Helper()
	c := find(t, list, id)
	for _, from := range signals {
		for _, to := range signals {
			if supports(c, from+"-to-"+to) {
				return from, to
			}
		}
	}
	require.Fail(t, "no pair of signals", "%s: %v", id, c.Stability)
	return "", ""
}

func supports(c listed, signal string) bool {
	level, ok := c.Stability[signal]
	return ok && level != "Undefined"
}

// everyEnvironment makes what components.yaml names: folders, free addresses, fakes.
func everyEnvironment(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"traces", "rings", "dumps", "checkpoints"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "peers"), nil, 0o600))
	ports := freePorts(t, 14)
	env := map[string]string{
		"DIR": dir, "HEALTH": ports[0], "CLOSED": ports[1], "UDP": ports[2],
		"DOCKER":     serve(t, map[string]any{"/containers/json": []any{}, "/version": map[string]string{"ApiVersion": "1.44"}}),
		"KUBERNETES": serve(t, map[string]any{"/stats/summary": map[string]any{"node": map[string]any{}, "pods": []any{}}}),
		"REDIS":      refuseLines(t),
		// The kubelet and the cluster's API server give these to their clients.
		"K8S_NODE_NAME": "node",
	}
	for i, port := range ports[3:] {
		env[fmt.Sprintf("FREE_%d", i+1)] = port
	}
	env["KUBECONFIG"] = filepath.Join(dir, "kubeconfig")
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
  contexts: [{name: c, context: {cluster: c, user: u}}],
  clusters: [{name: c, cluster: {server: "http://%s"}}], users: [{name: u, user: {token: t}}]}`, env["KUBERNETES"])
	require.NoError(t, os.WriteFile(env["KUBECONFIG"], []byte(kubeconfig), 0o600))
	return env
}

// serve answers the paths that end as given, watches of Kubernetes with nothing until the
// client leaves, and all else with an empty list.
func serve(t *testing.T, answers map[string]any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		for path, answer := range answers {
			if strings.HasSuffix(r.URL.Path, path) {
				_ = json.NewEncoder(w).Encode(answer)
				return
			}
		}
		fmt.Fprint(w, `{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}`)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// refuseLines is a Redis that answers each request with an error.
func refuseLines(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("-ERR not a real one\r\n"))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}
