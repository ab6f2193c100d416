// SPDX-License-Identifier: Apache-2.0

package part

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/fleet"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// libraryFolders are those that the receiver looks into by default.
func libraryFolders() []string {
	folders := fleet.LibraryFolders()
	for i, folder := range folders {
		folders[i] = "/" + folder
	}
	return folders
}

// fact is what another source reports of a version.
type fact struct {
	domain  model.VersionDomain
	source  string
	version string
}

// judgeVersions compares versions with facts of other sources: each fact is to be among
// the versions of its domain, and each version of its domain among the facts.
func judgeVersions(right report.Status, versions []fleet.Version, facts []fact) (report.Status, string) {
	of := map[model.VersionDomain][]string{}
	for _, v := range versions {
		of[v.Domain] = append(of[v.Domain], v.Version)
	}
	others := map[model.VersionDomain][]string{}
	for _, f := range facts {
		others[f.domain] = append(others[f.domain], f.version)
		if !slices.Contains(of[f.domain], f.version) {
			return report.Failed, fmt.Sprintf("read version of %s: got %q; want %s, which is of %s", f.domain, of[f.domain], f.version, f.source)
		}
	}
	var agreed, alone []string
	for domain, values := range of {
		slices.Sort(values)
		name := fmt.Sprintf("%s %s", domain, strings.Join(slices.Compact(values), " and "))
		if len(others[domain]) == 0 {
			alone = append(alone, name)
			continue
		}
		for _, v := range values {
			if !slices.Contains(others[domain], v) {
				return report.Failed, fmt.Sprintf("read version of %s: got %s; want what other sources report, %q", domain, v, others[domain])
			}
		}
		agreed = append(agreed, name)
	}
	slices.Sort(agreed)
	slices.Sort(alone)
	if len(agreed) == 0 {
		return report.NotShown, "compare versions: got no other source; want one at least"
	}
	text := "as other sources have it: " + strings.Join(agreed, ", ")
	if len(others[model.VersionKernelDriver])+len(others[model.VersionUserDriver]) == 0 {
		right, text = report.NotShown, "no version of the driver from another source; "+text
	}
	if len(alone) > 0 {
		text += "; without another source: " + strings.Join(alone, ", ")
	}
	return right, text
}

// judgeMismatch returns failed for a mismatch of the driver where other sources have one
// version of it. Else the machine may have the mismatch.
func judgeMismatch(right report.Status, m fleet.Mismatch, facts []fact) report.Status {
	of := map[model.VersionDomain]string{}
	for _, f := range facts {
		of[f.domain] = f.version
	}
	loaded := of[model.VersionKernelDriver]
	if m.Kind == model.FactDriverMismatch && loaded != "" && of[model.VersionUserDriver] == loaded {
		return report.Failed
	}
	return right
}

// truth asks other sources than those that the receiver reads.
func (n *node) truth(ctx context.Context) (facts []fact) {
	add := func(domain model.VersionDomain, source, version string) {
		if version != "" {
			facts = append(facts, fact{domain, source, version})
		}
	}
	// A sandbox may have no such file, and then the receiver has no version of the kernel.
	if _, err := os.Stat("/proc/sys/kernel/osrelease"); err != nil {
		n.p.Add("kernel", report.NotShown, "the version of the kernel cannot be read here: "+err.Error())
	} else if r, err := n.k.Run(ctx, kit.Command{Path: "uname", Args: []string{"-r"}, Limit: smiLimit}); err == nil {
		add(model.VersionKernel, "uname -r", strings.TrimSpace(r.Stdout))
	}
	add(model.VersionUserDriver, "the name of libcuda", libcuda(libraryFolders()))
	if n.xml == nil {
		return facts
	}
	for _, q := range []struct {
		field  string
		domain model.VersionDomain
	}{{"driver_version", model.VersionKernelDriver}, {"vbios_version", model.VersionVBIOS}} {
		for _, line := range n.query(ctx, q.field) {
			add(q.domain, "nvidia-smi --query-gpu="+q.field, line)
		}
	}
	add(model.VersionCUDA, "libcuda's cuDriverGetVersion", n.cuda(ctx))
	return facts
}

// query returns a field of each GPU.
func (n *node) query(ctx context.Context, field string) (lines []string) {
	r, err := n.k.Run(ctx, kit.Command{Path: n.smi, Args: []string{"--query-gpu=" + field, "--format=csv,noheader"}, Limit: smiLimit})
	if err != nil {
		n.p.Add("smi-query", report.Failed, err.Error())
		return nil
	}
	for line := range strings.Lines(r.Stdout) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[") && line != "N/A" {
			lines = append(lines, line)
		}
	}
	return lines
}

// cuda returns the version of CUDA that the driver supports; empty where there is no libcuda.
func (n *node) cuda(ctx context.Context) string {
	if n.k.Python == "" {
		return ""
	}
	r, err := n.k.Run(ctx, kit.Command{Path: n.k.Python, Args: []string{n.k.Program("driver.py")}, Limit: smiLimit})
	var answer struct {
		CUDA string `json:"cuda"`
	}
	if err == nil {
		err = object(r, &answer)
	}
	if err != nil {
		n.p.Add("libcuda", report.NotShown, err.Error())
	}
	return answer.CUDA
}

var libcudaVersion = regexp.MustCompile(`^libcuda\.so\.(\d+(?:\.\d+)+)$`)

// libcuda returns the driver's version in the name of the file that libcuda.so.1 leads to.
func libcuda(folders []string) string {
	for _, dir := range folders {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, "libcuda.so.1"))
		if err != nil {
			continue
		}
		if m := libcudaVersion.FindStringSubmatch(filepath.Base(path)); m != nil {
			return m[1]
		}
	}
	return ""
}

// decodeVersions reads the versions that the receiver emitted at last: lines of OTLP JSON.
// A last line without an end is left for the next time.
func decodeVersions(lines []byte) ([]fleet.Version, error) {
	last := map[string]fleet.Version{}
	var decoder plog.JSONUnmarshaler
	number := 0
	for line := range bytes.Lines(lines) {
		if number++; !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		logs, err := decoder.UnmarshalLogs(line)
		if err != nil {
			return nil, fmt.Errorf("read events: line %d: %w", number, err)
		}
		for _, v := range versionsIn(logs) {
			last[string(v.Domain)+"\n"+v.Model+"\n"+v.Unit+"\n"+v.Version] = v
		}
	}
	versions := make([]fleet.Version, 0, len(last))
	for _, v := range last {
		versions = append(versions, v)
	}
	return versions, nil
}

func versionsIn(logs plog.Logs) (versions []fleet.Version) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				get := func(name string) string {
					v, _ := record.Attributes().Get(name)
					return v.Str()
				}
				if record.EventName() == semconv.EventHostFact && get(semconv.FactKind) == model.FactVersion {
					versions = append(versions, fleet.Version{
						Domain: model.VersionDomain(get(semconv.VersionDomain)), Version: get(semconv.VersionValue),
						Model: get(semconv.VersionModel), Unit: get(semconv.VersionUnit),
					})
				}
			}
		}
	}
	return versions
}

// standInSMI answers what the part asks, as nvidia-smi of a machine with one GPU does.
const standInSMI = `#!/bin/sh
case "$*" in
"-q -x") cat <<'END'
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>580.0.1</driver_version>
	<cuda_version>13.0</cuda_version>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000000:3B:00.0">
		<product_name>a stand-in</product_name>
		<serial>1000000000001</serial>
		<uuid>GPU-3b3b3b3b-3b3b-3b3b-3b3b-3b3b3b3b3b3b</uuid>
		<vbios_version>90.00.01</vbios_version>
		<gsp_firmware_version>580.0.1</gsp_firmware_version>
	</gpu>
</nvidia_smi_log>
END
;;
*driver_version*) echo 580.0.1 ;;
*vbios_version*) echo 90.00.01 ;;
*) echo "nvidia-smi stand-in: got $*" >&2; exit 2 ;;
esac
`
