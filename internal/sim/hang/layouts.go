// SPDX-License-Identifier: Apache-2.0

package hang

// Layouts are jobs of some kinds, small enough to run many.
var Layouts = []Layout{
	{Name: "ddp2", TP: 1, DP: 2, PP: 1, EP: 1, Layers: 3, Micro: 2, Steps: 12, RunAhead: 100, SyncEvery: 4},
	{Name: "ddp8", TP: 1, DP: 8, PP: 1, EP: 1, Layers: 4, Micro: 2, Steps: 12, RunAhead: 200},
	{Name: "zero8", TP: 1, DP: 8, PP: 1, EP: 1, Layers: 4, Micro: 2, Steps: 10, Sharded: true, RunAhead: 64, SyncEvery: 2},
	{Name: "tp4dp4", TP: 4, DP: 4, PP: 1, EP: 1, Layers: 3, Micro: 2, Steps: 8, RunAhead: 100, SyncEvery: 1},
	{Name: "pipe2", TP: 2, DP: 2, PP: 2, EP: 1, Layers: 2, Micro: 4, Steps: 8, RunAhead: 60, Eager: true},
	{Name: "pipe4", TP: 1, DP: 2, PP: 4, EP: 1, Layers: 2, Micro: 6, Steps: 8, RunAhead: 40, SyncEvery: 1},
	{Name: "batch4", TP: 2, DP: 2, PP: 4, EP: 1, Layers: 1, Micro: 6, Steps: 8, Batched: true, RunAhead: 80, SyncEvery: 2},
	{Name: "moe16", TP: 2, DP: 4, PP: 2, EP: 4, Layers: 2, Micro: 4, Steps: 6, Batched: true, RunAhead: 100, SyncEvery: 1},
	{Name: "all32", TP: 2, DP: 8, PP: 2, EP: 4, Layers: 1, Micro: 3, Steps: 8, Sharded: true, WorldMessages: true, RunAhead: 64},
	{Name: "all64", TP: 4, DP: 4, PP: 4, EP: 2, Layers: 1, Micro: 5, Steps: 5, Sharded: true, Batched: true, RunAhead: 150, SyncEvery: 1},
	{Name: "gloo8", TP: 2, DP: 4, PP: 1, EP: 1, Layers: 2, Micro: 2, Steps: 10, RunAhead: 1, Gloo: true},
}
