// SPDX-License-Identifier: Apache-2.0

package frwrite

import (
	"encoding/json"
	"strconv"
)

// JSON writes the dump as PyTorch's JSON twin: keys sorted, statuses as strings, no
// frames, 0 for a time that is not known, and no key for entries where there are none.
func JSON(d *Dump) []byte {
	k := d.keys()
	top := map[string]any{"version": d.version(), "pg_config": jsonGroups(d.Groups)}
	if k.lib != "" {
		top[k.lib] = d.LibVersion
	}
	if k.status {
		top["pg_status"] = jsonStatus(d.Status)
	}
	if len(d.Entries) > 0 {
		entries := make([]map[string]any, len(d.Entries))
		for i := range d.Entries {
			entries[i] = jsonEntry(&d.Entries[i], k)
		}
		top["entries"] = entries
	}
	if len(d.CommState) > 0 {
		comms := map[string]map[string]string{}
		for _, c := range d.CommState {
			comms[c.Comm] = map[string]string{}
			for _, v := range c.Values {
				comms[c.Comm][v[0]] = v[1]
			}
		}
		top["nccl_comm_state"] = comms
	}
	data, err := json.Marshal(top)
	if err != nil {
		// Only a Duration that is no number can be at fault, and PyTorch has none.
		panic(err)
	}
	return data
}

func jsonGroups(groups []Group) map[string]any {
	m := map[string]any{}
	for _, g := range groups {
		m[g.Name] = map[string]string{"name": g.Name, "desc": g.Desc, "ranks": ranksText(g.Ranks)}
	}
	return m
}

func jsonStatus(status []Status) map[string]any {
	m := map[string]any{}
	for _, s := range status {
		m[strconv.FormatInt(s.PGID, 10)] = map[string]string{
			"last_enqueued_collective":  strconv.FormatInt(s.Enqueued, 10),
			"last_started_collective":   strconv.FormatInt(s.Started, 10),
			"last_completed_collective": strconv.FormatInt(s.Completed, 10),
		}
	}
	return m
}

func jsonEntry(e *Entry, k keys) map[string]any {
	m := map[string]any{
		"record_id": e.RecordID, "pg_id": e.PGID, "process_group": []string{e.Group, e.Desc},
		"collective_seq_id": e.CollectiveSeq, "p2p_seq_id": e.P2PSeq, "op_id": e.OpID,
		"profiling_name": e.Name, "time_created_ns": e.Created,
		"input_sizes": listOf(e.In), "output_sizes": listOf(e.Out), "state": e.State,
		"time_discovered_started_ns": e.Started, "time_discovered_completed_ns": e.Completed,
		"retired": e.Retired, "is_p2p": e.P2P,
	}
	if e.Duration != nil {
		m["duration_ms"] = *e.Duration
	}
	if k.thread {
		m["thread_name"], m["thread_id"] = e.ThreadName, e.ThreadID
	}
	if k.types {
		m["input_dtypes"], m["output_dtypes"] = listOf(e.InTypes), listOf(e.OutTypes)
		m["timeout_ms"] = e.TimeoutMS
	}
	return m
}

// listOf spares JSON the null that an empty slice of Go would be.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
