// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// histograms is the JSON of lockstep.summary.histograms, specified in
// docs/format/summary.md.
type histograms struct {
	Version int                  `json:"v"`
	Scale   int32                `json:"scale"`
	Keys    map[string]histogram `json:"keys"`
}

type histogram struct {
	Count    int64   `json:"n"`
	Sum      float64 `json:"sum"` // s
	Zero     int64   `json:"zero,omitempty"`
	Overflow int64   `json:"over,omitempty"`
	// Buckets alternates the index of a bucket and its count, by index.
	Buckets []int64 `json:"b,omitempty"`
}

const histogramVersion = 1

// MarshalHistograms renders one histogram per operation key; empty where there
// are none. Where they are more than MaxDocument bytes, the keys that occur
// least are one, under model.OpOther.
func MarshalHistograms(byKey map[string]*stats.Histogram) string {
	text := marshalAll(byKey)
	for keys := len(byKey); len(text) > MaxDocument && keys > 1; {
		keys /= 2
		text = marshalAll(fold(byKey, keys))
	}
	return text
}

// fold keeps the histograms of so many keys, of those that occur most, and adds up the others.
func fold(byKey map[string]*stats.Histogram, keep int) map[string]*stats.Histogram {
	keys := slices.SortedFunc(maps.Keys(byKey), func(a, b string) int {
		return cmp.Or(cmp.Compare(byKey[b].Count, byKey[a].Count), cmp.Compare(a, b))
	})
	out := map[string]*stats.Histogram{}
	rest := stats.NewHistogram()
	for i, key := range keys {
		if i < keep && key != model.OpOther {
			out[key] = byKey[key]
			continue
		}
		rest.Merge(byKey[key])
	}
	out[model.OpOther] = rest
	return out
}

func marshalAll(byKey map[string]*stats.Histogram) string {
	if len(byKey) == 0 {
		return ""
	}
	out := histograms{Version: histogramVersion, Scale: stats.Scale, Keys: make(map[string]histogram, len(byKey))}
	for key, h := range byKey {
		wire := histogram{Count: h.Count, Sum: h.Sum, Zero: h.Zero, Overflow: h.Overflow}
		for _, i := range slices.Sorted(maps.Keys(h.Buckets)) {
			wire.Buckets = append(wire.Buckets, int64(i), h.Buckets[i])
		}
		out.Keys[key] = wire
	}
	text, err := json.Marshal(out)
	if err != nil { // a sum that is no number; its histogram says nothing
		return ""
	}
	return string(text)
}

// UnmarshalHistograms is the inverse of MarshalHistograms.
func UnmarshalHistograms(text string) (map[string]*stats.Histogram, error) {
	var in histograms
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, fmt.Errorf("read histograms: %w", err)
	}
	if in.Version != histogramVersion {
		return nil, fmt.Errorf("read histograms: got version %d; want %d", in.Version, histogramVersion)
	}
	out := make(map[string]*stats.Histogram, len(in.Keys))
	for key, wire := range in.Keys {
		h := stats.NewHistogram()
		if in.Scale != stats.Scale {
			return nil, fmt.Errorf("read histograms: got scale %d; want %d", in.Scale, stats.Scale)
		}
		if err := wire.read(h); err != nil {
			return nil, fmt.Errorf("read histogram of %.80q: %w", key, err)
		}
		out[cut.Bytes(key, cut.MaxName)] = h
	}
	return out, nil
}

func (w *histogram) read(h *stats.Histogram) error {
	if len(w.Buckets)%2 != 0 {
		return fmt.Errorf("got %d numbers in b; want pairs", len(w.Buckets))
	}
	h.Count, h.Sum, h.Zero, h.Overflow = w.Count, w.Sum, w.Zero, w.Overflow
	for i := 0; i < len(w.Buckets); i += 2 {
		index, n := w.Buckets[i], w.Buckets[i+1]
		if int64(int32(index)) != index || n < 0 {
			return fmt.Errorf("got bucket %d with count %d; want a 32-bit index and a count from 0", index, n)
		}
		h.Buckets[int32(index)] += n
	}
	return nil
}
