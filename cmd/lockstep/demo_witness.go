// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strconv"
	"strings"
)

// The rows of docs/capabilities.md that a job can be watched with: each has what
// those before it have.
const (
	witnessHostEvents = "host-events"
	witnessKernels    = "kernels"
	witnessProxy      = "proxy"
	witnessScopes     = "scopes"
	witnessCupti      = "cupti"
)

var demoWitnesses = []string{witnessHostEvents, witnessKernels, witnessProxy, witnessScopes, witnessCupti}

// What NCCL is asked for, as its profiler interface numbers it.
const (
	eventGroup     = 1 << 0
	eventColl      = 1 << 1
	eventP2P       = 1 << 2
	eventProxyOp   = 1 << 3
	eventProxyStep = 1 << 4
	eventKernelCh  = 1 << 6

	hostEvents   = eventGroup | eventColl | eventP2P
	kernelEvents = hostEvents | eventKernelCh
	proxyEvents  = kernelEvents | eventProxyOp | eventProxyStep
)

// marks reports whether the job tells of its steps and scopes.
func (o *demoOptions) marks() bool {
	return !slices.Contains([]string{witnessHostEvents, witnessKernels, witnessProxy}, o.witness)
}

// witnessEnv is what the plugin has to know; from scopes on, the level decides
// what NCCL is asked for.
func (o *demoOptions) witnessEnv(parts *demoParts) []string {
	mask := func(events int) []string { return []string{"LOCKSTEP_EVENT_MASK=" + strconv.Itoa(events)} }
	switch o.witness {
	case witnessHostEvents:
		return mask(hostEvents)
	case witnessKernels:
		return mask(kernelEvents)
	case witnessProxy:
		return mask(proxyEvents)
	case witnessCupti:
		return []string{"CUDA_INJECTION64_PATH=" + parts.plugin, "LOCKSTEP_CUPTI=" + parts.cupti}
	}
	return nil
}

// witnessTold says what the job is watched with, where that is not the usual.
func (o *demoOptions) witnessTold() string {
	switch o.witness {
	case witnessHostEvents:
		return "What is seen is when operations are enqueued, and no more."
	case witnessKernels:
		return "What is seen is when operations are enqueued, and when their kernels run."
	case witnessProxy:
		return "What is seen is when operations are enqueued, when their kernels run, and what their transfers wait for."
	case witnessCupti:
		return "Beside operations and scopes, every kernel of the device is seen, by a stand-in for CUPTI."
	}
	return ""
}

func oneOf(values []string) string { return strings.Join(values, ", ") }
