// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settings are those of one component, by name.
type settings = map[string]any

// limits are of components, by section and type.
type limits = map[string]map[string]settings

// lowered returns limits that hostile load reaches within a minute or two: max_memory_mib for
// engines that have it, which is otherwise a part of the machine's memory, and small stores and
// short lives of series elsewhere.
func lowered(mib int) limits {
	const expiration = "1m"
	return limits{
		"connectors": {
			"straggler": {"max_memory_mib": mib, "series_expiration": expiration},
			"desync":    {"max_memory_mib": mib},
			"epoch":     {"max_memory_mib": mib},
			"clocks":    {"series_expiration": expiration},
			"findings":  {"series_expiration": expiration},
		},
		"processors": {
			"straggler":  {"max_memory_mib": mib},
			"clock_skew": {"max_spans": 4096, "max_clocks": 4096},
		},
		"extensions": {"timeline": {"max_clocks": 1024}},
		"exporters":  {"prometheus": {"metric_expiration": expiration}},
	}
}

// loweredForSoak are those that ordinary load reaches in a quarter of an hour: bytes alone would
// take days.
func loweredForSoak(mib int) limits {
	const jobs = 24
	all := lowered(mib)
	all["connectors"]["straggler"]["max_jobs"] = jobs
	all["connectors"]["desync"]["max_jobs"] = jobs
	all["connectors"]["findings"]["max_open_findings"] = 64
	all["processors"]["straggler"]["max_jobs"] = jobs
	return all
}

// overlay returns a configuration beside a published one: it adds the pprof extension, and lowers
// the limits of the components that the published one has. Lists replace lists.
func overlay(path, endpoint string, lower limits) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	var published map[string]map[string]any
	if err := yaml.Unmarshal(b, &published); err != nil {
		return "", fmt.Errorf("read configuration %s: %w", path, err)
	}
	added := limitsOf(published, lower)
	if added["extensions"] == nil {
		added["extensions"] = map[string]any{}
	}
	added["extensions"]["pprof"] = settings{"endpoint": endpoint}
	listed, _ := published["service"]["extensions"].([]any)
	added["service"] = map[string]any{"extensions": append(listed, "pprof")}
	text, err := yaml.Marshal(added)
	return "yaml:" + string(text), err
}

// limitsOf returns the limits of the components that a configuration has.
func limitsOf(published map[string]map[string]any, lower limits) map[string]map[string]any {
	of := map[string]map[string]any{}
	for section, types := range lower {
		for id := range published[section] {
			kind, _, _ := strings.Cut(id, "/")
			if types[kind] == nil {
				continue
			}
			if of[section] == nil {
				of[section] = map[string]any{}
			}
			of[section][id] = types[kind]
		}
	}
	return of
}
