// SPDX-License-Identifier: Apache-2.0

// Package ranklog reads hangs from the logs of ranks: the lines of PyTorch's
// ProcessGroupNCCL watchdog and heartbeat monitor, the error summary of torchrun, and the last
// error that a rank wrote itself. It makes a model.RankState of each rank, and an absence of each
// rank that ended, which internal/desync judges as it judges dumps.
//
// docs/format/rank-logs.md lists the lines, by version.
package ranklog
