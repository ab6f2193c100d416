// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

const (
	fingerprintLimit = 35 * time.Second
	// claimedMiB is what inject/python/README.md claims that a call takes of the device's memory.
	claimedMiB = 24
)

// fingerprinted is what programs/fingerprint.py prints.
type fingerprinted struct {
	Device     string   `json:"device"`
	Parameters int      `json:"parameters"`
	Tensors    int      `json:"tensors"`
	Slices     int      `json:"slices"`
	CallMS     float64  `json:"call_ms"`
	CallMaxMS  float64  `json:"call_max_ms"`
	ExtraMiB   *float64 `json:"extra_mib"`
	Hashes     []string `json:"hashes"`
	Copy       []string `json:"of_a_copy"`
	CPU        []string `json:"on_the_cpu"`
	Flipped    []string `json:"flipped"`
	// FlippedSlice has the element of which one bit was flipped.
	FlippedSlice int `json:"flipped_slice"`
}

// fingerprints runs the program once for each type of parameters: one may break.
func (n *node) fingerprints(ctx context.Context) {
	if n.k.Torch == nil {
		n.p.Add("fingerprint", report.NotShown, "the fingerprint needs PyTorch: "+n.k.Reason)
		return
	}
	device := "cpu"
	if n.k.GPU != nil {
		device = "cuda"
	}
	for _, dtype := range []string{"bfloat16", "float32"} {
		name := "fingerprint-" + dtype
		r, err := n.k.Run(ctx, kit.Command{
			Path: n.k.Python, Args: []string{n.k.Program("fingerprint.py"), "--device", device, "--type", dtype},
			Env: []string{"PYTHONPATH=" + n.k.Packages()}, Limit: fingerprintLimit,
		})
		var f fingerprinted
		if err == nil {
			err = object(r, &f)
		}
		if err != nil {
			broken(n.p, name, err)
			continue
		}
		f.judge(n.p, name, n.k.Right())
	}
	if device == "cpu" {
		n.p.Add("fingerprint-device", report.NotShown, "time and memory of a GPU, and that it hashes as the CPU does, need a GPU: "+n.k.Reason)
	}
}

// judge adds the checks of one type.
func (f *fingerprinted) judge(p *report.Part, name string, right report.Status) {
	status, text := f.hashesRight(right)
	figures := []report.Figure{
		{Name: "call", Value: f.CallMS, Unit: "ms"},
		{Name: "longest", Value: f.CallMaxMS, Unit: "ms"},
		{Name: "parameters", Value: float64(f.Parameters) / 1e6, Unit: "M"},
		{Name: "tensors", Value: float64(f.Tensors), Unit: "1"},
	}
	p.Add(name, status, text, figures...)
	if f.ExtraMiB == nil {
		return
	}
	status, text = right, fmt.Sprintf("a call takes no more than %d MiB of the device's memory", claimedMiB)
	if *f.ExtraMiB > claimedMiB {
		status, text = report.Failed, fmt.Sprintf("measure memory of a call: got %.1f MiB; want at most %d", *f.ExtraMiB, claimedMiB)
	}
	p.Add(name+"-memory", status, text, report.Figure{Name: "memory", Value: *f.ExtraMiB, Unit: "MiB"})
}

// hashesRight compares the hashes of all slices.
func (f *fingerprinted) hashesRight(right report.Status) (report.Status, string) {
	switch changed := differing(f.Hashes, f.Flipped); {
	case len(f.Hashes) != f.Slices || f.Slices == 0 || slices.Contains(f.Hashes, ""):
		return report.Failed, fmt.Sprintf("hash slices: got %d of %d; want all", len(f.Hashes), f.Slices)
	case !slices.Equal(f.Hashes, f.Copy):
		return report.Failed, fmt.Sprintf("hash a copy: got other hashes in slices %v; want equal ones", differing(f.Hashes, f.Copy))
	case !slices.Equal(f.Hashes, f.CPU):
		return report.Failed, fmt.Sprintf("hash on the CPU: got other hashes than of %s in slices %v; want equal ones", f.Device, differing(f.Hashes, f.CPU))
	case !slices.Equal(changed, []int{f.FlippedSlice}):
		return report.Failed, fmt.Sprintf("hash with one bit flipped: got other hashes in slices %v; want %d alone", changed, f.FlippedSlice)
	}
	return right, fmt.Sprintf("%s, %d slices: a copy and the CPU have the same hashes, and one flipped bit changes that of its slice alone", f.Device, f.Slices)
}

// differing returns the places at which two lists differ.
func differing(a, b []string) []int {
	places := []int{}
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			places = append(places, i)
		}
	}
	return places
}
