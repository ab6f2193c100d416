// SPDX-License-Identifier: Apache-2.0

// Package netstamptest is a network in memory for tests in bubbles of testing/synctest: a
// test of minutes passes at once, and its packets meet what real ones meet. Each direction
// between two addresses has a delay of its own, queues, and shares of packets that are
// lost, doubled and overtaken. What happens to the nth packet from one port to another
// depends on the network's seed alone.
//
// What it cannot show is what the kernel does: tests with real sockets stay beside it.
// AwaitStamps is for these.
package netstamptest
