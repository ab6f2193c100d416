// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// queueConfig is what the tests of queues read of a configuration.
type queueConfig struct {
	Exporters map[string]struct {
		Queue *struct {
			Storage   string `yaml:"storage"`
			Size      int64  `yaml:"queue_size"`
			Consumers int    `yaml:"num_consumers"`
			Enabled   *bool  `yaml:"enabled"`
		} `yaml:"sending_queue"`
	} `yaml:"exporters"`
	Extensions map[string]struct {
		Storage    string `yaml:"storage"`
		Directory  string `yaml:"directory"`
		Create     bool   `yaml:"create_directory"`
		Recreate   bool   `yaml:"recreate"`
		MaxSize    int64  `yaml:"max_size"`
		Compaction struct {
			Directory string `yaml:"directory"`
			OnStart   bool   `yaml:"on_start"`
			OnRebound bool   `yaml:"on_rebound"`
			Cleanup   bool   `yaml:"cleanup_on_start"`
		} `yaml:"compaction"`
	} `yaml:"extensions"`
	Service struct {
		Extensions []string `yaml:"extensions"`
	} `yaml:"service"`
}

// The extensions that keep the queues of the published configurations.
const (
	queuesIn = "queue_storage"
	filesIn  = "file_storage"
)

// eachQueue calls check with every published configuration that has a sending queue, in which
// exporters without one are left out.
func eachQueue(t *testing.T, check func(t *testing.T, name string, c queueConfig)) {
	t.Helper()
	tried := 0
	for _, file := range filesOf(t, "distro/config/*.yaml") {
		var c queueConfig
		require.NoError(t, yaml.Unmarshal(readFile(t, file), &c), file)
		for id := range c.Exporters {
			q := c.Exporters[id].Queue
			if q == nil || q.Enabled != nil && !*q.Enabled {
				delete(c.Exporters, id)
			}
		}
		if len(c.Exporters) > 0 {
			tried++
			t.Run(file, func(t *testing.T) { check(t, file, c) })
		}
	}
	assert.Positive(t, tried)
}

// What an exporter has accepted survives a kill: its queue is in files that are made where they are
// missing, and neither grow without a limit nor stay large.
func TestPublishedQueues_AreKeptInBoundedFiles(t *testing.T) {
	eachQueue(t, func(t *testing.T, _ string, c queueConfig) {
		t.Helper()
		assert.Subset(t, c.Service.Extensions, []string{queuesIn, filesIn})
		assert.Equal(t, filesIn, c.Extensions[queuesIn].Storage)
		storage := c.Extensions[filesIn]
		assert.True(t, storage.Create, "create_directory")
		assert.True(t, storage.Recreate, "recreate")
		assert.Equal(t, storage.Directory, storage.Compaction.Directory, "the default is a directory that a user may not have")
		assert.True(t, storage.Compaction.OnStart, "on_start")
		assert.True(t, storage.Compaction.OnRebound, "on_rebound")
		assert.True(t, storage.Compaction.Cleanup, "cleanup_on_start")
		for id, exporter := range c.Exporters {
			assert.Equal(t, queuesIn, exporter.Queue.Storage, "%s", id)
			// The queue's own limit refuses first: a file that is full forgets how much it holds.
			assert.GreaterOrEqual(t, storage.MaxSize, 2*exporter.Queue.Size, "max_size of %s", id)
		}
	})
}

// What an agent sends arrives in order: a request that is tried again must not be overtaken, or the
// gateway has judged later steps by then and drops it as late.
func TestPublishedQueues_OfAgents_KeepTheOrder(t *testing.T) {
	agents := 0
	eachQueue(t, func(t *testing.T, name string, c queueConfig) {
		t.Helper()
		if !strings.Contains(name, "agent") {
			return
		}
		agents++
		for id, exporter := range c.Exporters {
			assert.Equal(t, 1, exporter.Queue.Consumers, "num_consumers of %s", id)
		}
	})
	assert.Equal(t, 4, agents)
}

var envDefault = regexp.MustCompile(`^\$\{env:LOCKSTEP_STATE:-([^}]+)\}$`)

// An agent and a gateway on one host have directories of their own by default: of one file, the
// second to start would wait for the first. git ignores both, below a checkout.
func TestPublishedQueues_AgentAndGateway_ShareNoDirectory(t *testing.T) {
	ignored := strings.Fields(string(readFile(t, ".gitignore")))
	agents := map[bool]map[string]bool{true: {}, false: {}}
	eachQueue(t, func(t *testing.T, name string, c queueConfig) {
		t.Helper()
		directory := envDefault.FindStringSubmatch(c.Extensions[filesIn].Directory)
		require.NotNil(t, directory, "directory: got %q; want LOCKSTEP_STATE with a default", c.Extensions[filesIn].Directory)
		agents[strings.Contains(name, "agent")][directory[1]] = true
		assert.Contains(t, ignored, "/"+directory[1]+"/")
	})
	for directory := range agents[true] {
		assert.False(t, agents[false][directory], "%s is the directory of an agent and of another", directory)
	}
}

// In a container a queue survives a restart only where its directory is the host's.
func TestDocumentedDaemonSet_KeepsTheQueueOnTheHost(t *testing.T) {
	manifest := regexp.MustCompile("(?s)\n---\n(apiVersion: apps/v1\nkind: DaemonSet.*?)```").FindSubmatch(readFile(t, "docs", "clocks.md"))
	require.NotNil(t, manifest)
	var set struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Env    []struct{ Name, Value string }
						Mounts []struct {
							Name string
							Path string `yaml:"mountPath"`
						} `yaml:"volumeMounts"`
					}
					Volumes []struct {
						Name string
						Host struct{ Path string } `yaml:"hostPath"`
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(manifest[1], &set))
	pod := set.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	onHost := map[string]string{}
	for _, volume := range pod.Volumes {
		onHost[volume.Name] = volume.Host.Path
	}
	var state string
	for _, variable := range pod.Containers[0].Env {
		if variable.Name == "LOCKSTEP_STATE" {
			state = variable.Value
		}
	}
	require.NotEmpty(t, state, "LOCKSTEP_STATE")
	kept := false
	for _, mount := range pod.Containers[0].Mounts {
		kept = kept || onHost[mount.Name] != "" && strings.HasPrefix(state, mount.Path+"/")
	}
	assert.True(t, kept, "%s is below no volume of the host", state)
}
