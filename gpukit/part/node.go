// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/fleet"
)

//go:embed node.yaml
var nodeConfig []byte

const (
	smiLimit      = 10 * time.Second // it wakes each GPU first, a second or two
	receiverLimit = 14 * time.Second
)

func nodePart() Part {
	return Part{
		Name:  "node",
		Title: "The machine: versions that the fleet receiver reads, devices, cost of a replica's fingerprint",
		Limit: 80 * time.Second,
		Run:   runNode,
	}
}

func runNode(ctx context.Context, k *kit.Kit, p *report.Part) {
	n := &node{k: k, p: p, status: report.Shown}
	n.versions(ctx)
	n.devices(ctx)
	n.fingerprints(ctx)
}

// errNoSMI is returned where a stand-in would contradict the driver.
var errNoSMI = errors.New("find nvidia-smi: got none on the PATH, while PyTorch has a GPU; want one")

// node is one run of the part.
type node struct {
	k      *kit.Kit
	p      *report.Part
	smi    string        // path of nvidia-smi, or of its stand-in; empty: it does not answer
	status report.Status // of what is right: shown, or stand_in where nvidia-smi is ours
	xml    []byte        // what nvidia-smi -q -x printed; nil: no answer
}

func (n *node) versions(ctx context.Context) {
	if err := n.find(); err != nil {
		n.p.Add("smi", report.NotShown, err.Error())
		return
	}
	if n.xml = n.answer(ctx); n.xml == nil {
		n.smi = "" // it was asked once, and is one failed check
	}
	if ctx.Err() != nil {
		broken(n.p, "versions", kit.ErrNoTime)
		return
	}
	truth := n.truth(ctx)
	n.engine(ctx, truth)
	events := n.receiver(ctx, truth)
	n.keep(events)
}

// find sets the path of nvidia-smi, and makes a stand-in where the machine has none.
func (n *node) find() (err error) {
	if n.smi = kit.SMI(); n.smi != "" {
		if n.k.GPU == nil && !driver() {
			n.status = report.StandIn // a program of that name, and nothing that it could ask
		}
		return nil
	}
	if n.k.GPU != nil {
		return errNoSMI
	}
	n.status = report.StandIn
	n.smi = filepath.Join(n.k.Work, "nvidia-smi")
	if err := os.WriteFile(n.smi, []byte(standInSMI), 0o700); err != nil {
		return fmt.Errorf("make stand-in of nvidia-smi: %w", err)
	}
	return nil
}

// driver reports whether the kernel has NVIDIA's driver loaded.
func driver() bool {
	for _, path := range []string{"/dev/nvidiactl", "/proc/driver/nvidia/version"} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// answer returns what nvidia-smi prints in full; nil where it does not answer.
func (n *node) answer(ctx context.Context) []byte {
	r, err := n.k.Run(ctx, kit.Command{Path: n.smi, Args: []string{"-q", "-x"}, Limit: smiLimit, Private: true})
	if errors.Is(err, fs.ErrPermission) && n.status == report.StandIn {
		n.p.Add("smi-answer", report.NotShown, "the stand-in of nvidia-smi may not run in the scratch folder: "+err.Error())
		return nil
	}
	if err != nil {
		broken(n.p, "smi-answer", err)
		return nil
	}
	read, err := fleet.ParseSMI([]byte(r.Stdout))
	if err != nil {
		n.p.Add("smi-answer", report.Failed, err.Error())
		return nil
	}
	n.p.Add("smi-answer", n.status, fmt.Sprintf("nvidia-smi -q -x is read: %d versions", len(read.Versions)),
		report.Figure{Name: "size", Value: float64(len(r.Stdout)) / 1024, Unit: "KiB"},
		report.Figure{Name: "time", Value: r.Took.Seconds() * 1000, Unit: "ms"})
	return []byte(r.Stdout)
}

// engine compares what internal/fleet reads with other sources.
func (n *node) engine(ctx context.Context, truth []fact) {
	files := fleet.Files{Proc: "/proc", Sys: "/sys", Libraries: libraryFolders()}
	began := time.Now()
	reads := []*fleet.Read{files.Read()}
	if n.smi != "" {
		reads = append(reads, fleet.SMI(ctx, fleet.Command{Path: n.smi, Timeout: smiLimit}))
	}
	all := fleet.Join(append(reads, fleet.FabricManager(ctx, fleet.Command{Path: "nv-fabricmanager", Timeout: smiLimit}))...)
	took := report.Figure{Name: "time", Value: time.Since(began).Seconds() * 1000, Unit: "ms"}
	if ctx.Err() != nil {
		broken(n.p, "versions", kit.ErrNoTime)
		return
	}
	for _, problem := range all.Problems {
		n.p.Add("versions-problem", report.Failed, problem)
	}
	for _, m := range all.Mismatches {
		n.p.Add("versions-mismatch", judgeMismatch(n.status, m, truth), "the receiver reports "+m.Kind+": "+m.What)
	}
	status, text := judgeVersions(n.status, all.Versions, truth)
	n.p.Add("versions", status, text, took)
}

// receiver runs the collector's receiver and compares what it emits with other sources.
// It returns the lines.
func (n *node) receiver(ctx context.Context, truth []fact) []byte {
	config, path := filepath.Join(n.k.Work, "node.yaml"), filepath.Join(n.k.Work, "events.jsonl")
	if err := os.WriteFile(config, nodeConfig, 0o600); err != nil {
		n.p.Add("receiver", report.Failed, err.Error())
		return nil
	}
	run, err := n.k.Start(ctx, kit.Command{
		Path: n.k.Lockstep(), Args: []string{"run", config}, Limit: receiverLimit + 10*time.Second,
		Env: []string{"LOCKSTEP_KIT_SMI=" + n.smi, "LOCKSTEP_KIT_EVENTS=" + path},
	})
	if err != nil {
		broken(n.p, "receiver", err)
		return nil
	}
	status, text, lines := n.await(ctx, path, truth)
	err = errors.Join(run.Stop(), ended(run))
	if errors.Is(err, kit.ErrNoTime) {
		broken(n.p, "receiver", err)
		return lines
	}
	if err != nil && status != report.Failed {
		status, text = report.Failed, err.Error()
	}
	n.p.Add("receiver", status, text)
	return lines
}

// ended waits for the end of a program.
func ended(run *kit.Process) error {
	_, err := run.Wait()
	return err
}

// await looks at the receiver's events until they are right or its time is over.
func (n *node) await(ctx context.Context, path string, truth []fact) (status report.Status, text string, lines []byte) {
	ctx, cancel := context.WithTimeout(ctx, receiverLimit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(path)
		if err == nil {
			lines = b
			read, err := decodeVersions(lines)
			if status, text = judgeVersions(n.status, read, truth); err != nil {
				status, text = report.Failed, err.Error()
			}
		} else {
			status, text = report.Failed, "read events: got none; want versions"
		}
		if status != report.Failed {
			return status, text, lines
		}
		select {
		case <-ctx.Done():
			return status, text, lines
		case <-tick.C:
		}
	}
}

// keep keeps what was read as a fixture, without what names the machine.
func (n *node) keep(events []byte) {
	if n.xml == nil {
		return
	}
	xml, err := n.k.Scrub.SMI(n.xml)
	if err == nil {
		err = n.k.Fixture("node", kit.Entry{Name: "smi.xml", Content: xml}, kit.Entry{Name: "events.jsonl", Content: events})
	}
	if err != nil {
		n.p.Add("fixture", report.Failed, err.Error())
		return
	}
	n.p.Add("fixture", n.status, "node.tar.gz has the answer of nvidia-smi and the receiver's events, without what names this machine")
}

// object decodes the last line that a program printed.
func object(r *kit.Result, into any) error {
	line := kit.LastLine(r.Stdout)
	if err := json.Unmarshal([]byte(line), into); err != nil {
		return fmt.Errorf("read answer: got %.80q; want an object: %w", line, err)
	}
	return nil
}
