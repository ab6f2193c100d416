// SPDX-License-Identifier: Apache-2.0

package straggler

// Methods by which stragglers are named.
const (
	MethodLockstep = "lockstep"
	MethodKAIR     = "kair"
)
