// SPDX-License-Identifier: Apache-2.0

// Package ras owns what NCCL's RAS service says: the client of its text protocol, the
// reader of its JSON, and what of it are states of ranks. Every NCCL process answers for its
// whole job: how many collectives each rank has launched on each communicator, and which
// ranks do not answer. That tells who has not launched operation N; it tells no times, no
// messages, no ends and no order. Which version of NCCL it is, each says of itself only.
package ras
