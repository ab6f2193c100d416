// SPDX-License-Identifier: Apache-2.0

package rastest

import "fmt"

// Report writes what NCCL's ncclras prints of a job with one communicator of all its ranks, four a
// node. failures are the lines of its section of errors, warnings those of its warnings.
func Report(ranks int, failures, warnings string) string {
	state := "OK"
	if failures+warnings != "" {
		state = "MISMATCH"
	}
	return fmt.Sprintf("NCCL version 2.26.2 compiled with CUDA 12.6\nCUDA runtime version 12060, driver version 12060\n\n"+
		"Job summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"+
		"%7d  %9d  %11d  %9d  %7d\n\nCommunicators... (0.00s)\n=============\n\n"+
		"Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n    #  in group  per comm  per node  per comm  in group\n"+
		"%5d  %8d  %8d  %8s  %8d  %8d  %8s  %6s\n\nErrors\n======\n\n%sWarnings\n========\n\n%s",
		(ranks+3)/4, 4, 1, ranks, ranks, 0, 1, (ranks+3)/4, "1-4", ranks, ranks, "RUNNING", state, failures, warnings)
}
