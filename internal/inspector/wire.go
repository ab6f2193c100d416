// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"bytes"
	"encoding/json"
)

// The lines as they are written; docs/format/inspector.md says by which versions.

type wireLine struct {
	Header   json.RawMessage `json:"header"`
	Metadata json.RawMessage `json:"metadata"`
	Coll     *wireColl       `json:"coll_perf"`
	P2P      *wireP2P        `json:"p2p_perf"`
	Dump     *wireDump       `json:"dump_stats"`
	Proxy    json.RawMessage `json:"proxy_trace"`
}

type wireHeader struct {
	ID     string `json:"id"`
	Name   string `json:"comm_name"`
	Rank   number `json:"rank"`
	Ranks  number `json:"n_ranks"`
	NNodes number `json:"nnodes"`
}

type wireMetadata struct {
	Version  string `json:"inspector_output_format_version"`
	Dumped   number `json:"dump_timestamp_us"`
	Hostname string `json:"hostname"`
	PID      number `json:"pid"`
}

type wireColl struct {
	Name   string     `json:"coll"`
	Algo   string     `json:"coll_algo"`
	Proto  string     `json:"coll_proto"`
	Seq    number     `json:"coll_sn"`
	Bytes  number     `json:"coll_msg_size_bytes"`
	Took   number     `json:"coll_exec_time_us"`
	Timing string     `json:"coll_timing_source"`
	Bus    number     `json:"coll_busbw_gbs"`
	Trace  *wireTrace `json:"event_trace_ts"`
}

type wireP2P struct {
	Name   string     `json:"p2p"`
	Seq    number     `json:"p2p_sn"`
	Peer   number     `json:"p2p_peer"`
	Bytes  number     `json:"p2p_msg_size_bytes"`
	Took   number     `json:"p2p_exec_time_us"`
	Timing string     `json:"p2p_timing_source"`
	Bus    number     `json:"p2p_busbw_gbs"`
	Trace  *wireTrace `json:"event_trace_ts"`
}

// wireTrace are the host's stamps, us of gettimeofday; 0 is none.
type wireTrace struct {
	CollStart number       `json:"coll_start_ts"`
	P2PStart  number       `json:"p2p_start_ts"`
	Kernels   []wireKernel `json:"kernel_events"`
}

type wireKernel struct {
	Start number `json:"kernel_start_ts"`
	Stop  number `json:"kernel_stop_ts"`
}

// wireDump counts the lines that follow, and what was dropped.
type wireDump struct {
	Coll         number `json:"coll_records"`
	CollLost     number `json:"coll_dropped_since_last_dump"`
	P2P          number `json:"p2p_records"`
	P2PLost      number `json:"p2p_dropped_since_last_dump"`
	Proxy        number `json:"proxy_records"`
	ProxyLost    number `json:"proxy_dropped_since_last_dump"`
	ProxyOpsLost number `json:"proxy_ops_dropped_since_last_dump"`
}

// decode reads a line. Inspector's writer prints numbers with C's printf, which
// makes inf and nan of what is none, and no JSON: such values become null.
func decode(text []byte, to *wireLine) error {
	err := json.Unmarshal(text, to)
	if err == nil || !bytes.Contains(text, []byte("inf")) && !bytes.Contains(text, []byte("nan")) {
		return err
	}
	for _, word := range []string{"inf", "-inf", "nan", "-nan"} {
		for _, behind := range []string{",", "}"} {
			text = bytes.ReplaceAll(text, []byte(":"+word+behind), []byte(`:"`+word+`"`+behind))
		}
	}
	*to = wireLine{}
	return json.Unmarshal(text, to)
}
