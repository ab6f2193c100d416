// SPDX-License-Identifier: Apache-2.0

// Package fleet owns which versions a node runs: of its drivers, its firmware, its kernel, and of NCCL
// in a process of it. It reads them from /proc and /sys, from the names of the driver's libraries, and
// from what nvidia-smi, nv-fabricmanager and NCCL's RAS say; it finds where those of one node do not fit
// together; and it says what of that is told over time. It knows no collector, and no other node.
package fleet
