// SPDX-License-Identifier: Apache-2.0

package part

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// ncclInterfaces are the versions of the profiler interface by NCCL's minor version,
// from the first that has it.
var ncclInterfaces = []struct{ minor, version int }{{31, 7}, {29, 6}, {28, 5}, {27, 4}, {26, 3}, {24, 2}, {23, 1}}

// interfaceOf returns the version of the profiler interface that an NCCL has; 0: none known.
func interfaceOf(nccl string) int {
	var major, minor int
	if _, err := fmt.Sscanf(nccl, "%d.%d", &major, &minor); err != nil || major != 2 {
		return 0
	}
	for _, i := range ncclInterfaces {
		if minor >= i.minor {
			return i.version
		}
	}
	return 0
}

// library looks at the libnccl beside PyTorch, which needs no device.
func (n *ncclChecks) library() {
	if n.k.Torch == nil || n.k.Torch.LibNCCL == "" {
		n.p.Add("library", report.NotShown, "no libnccl beside PyTorch")
		return
	}
	want := interfaceOf(n.k.Torch.NCCL)
	var texts []string
	for v := 1; v <= 9; v++ {
		texts = append(texts, fmt.Sprintf("ncclProfiler_v%d", v))
	}
	has, err := stringsOf(n.k.Torch.LibNCCL, texts...)
	if err != nil {
		n.p.Add("library", report.Failed, err.Error())
		return
	}
	n.judge("library", libraryProblems(n.k.Torch.NCCL, want, has), fmt.Sprintf("NCCL %s looks for a profiler of interface v%d, which the plugin has", n.k.Torch.NCCL, want),
		report.Figure{Name: "interface", Value: float64(want), Unit: "1"})
}

// pluginInterfaces is the newest interface that the plugin has.
const pluginInterfaces = 7

func libraryProblems(version string, want int, has map[string]bool) (problems []string) {
	if want == 0 {
		return []string{fmt.Sprintf("got NCCL %q; want one since 2.23", version)}
	}
	newest := 0
	for v := 1; v <= 9; v++ {
		if has[fmt.Sprintf("ncclProfiler_v%d", v)] {
			newest = v
		}
	}
	if newest != want && newest <= pluginInterfaces {
		problems = append(problems, fmt.Sprintf("NCCL %s looks for interface v%d; want v%d", version, newest, want))
	}
	if newest > pluginInterfaces {
		problems = append(problems, fmt.Sprintf("NCCL %s looks for interface v%d; the plugin has v%d at most", version, newest, pluginInterfaces))
	}
	return problems
}

// stringsOf reports which of the texts, each a whole string of a binary, a file has.
func stringsOf(path string, texts ...string) (map[string]bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("look into library: %w", err)
	}
	defer f.Close()
	found, err := findStrings(f, texts)
	if err != nil {
		return nil, fmt.Errorf("look into library: %w", err)
	}
	return found, nil
}

const (
	searchBytes = 1 << 20
	// searchKeep is what two blocks share: longer than any text that is looked for.
	searchKeep = 256
)

func findStrings(r io.Reader, texts []string) (map[string]bool, error) {
	found := map[string]bool{}
	buf := make([]byte, 0, searchBytes+searchKeep)
	for {
		n, err := io.ReadFull(r, buf[len(buf):len(buf)+searchBytes])
		buf = buf[:len(buf)+n]
		for _, text := range texts {
			found[text] = found[text] || bytes.Contains(buf, []byte(text+"\x00"))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		keep := min(searchKeep, len(buf))
		buf = append(buf[:0], buf[len(buf)-keep:]...)
	}
}
