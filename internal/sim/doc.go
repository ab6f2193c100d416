// SPDX-License-Identifier: Apache-2.0

// Package sim simulates clocks, a network and the probes between them, with a
// truth that is known exactly: what estimators are tested against. No engine
// imports it.
//
// The network is a folded Clos: racks, pods and a core, with parallel paths of
// different length. Each queue on the way is busy for a share of the time that is
// its load, and a packet that finds it busy waits exponentially long (M/M/1).
// Clocks have an offset, a drift and a frequency that swings with temperature.
// Stamps have a jitter and outliers, and clocks can be made to lie.
package sim
