// SPDX-License-Identifier: Apache-2.0

// Package hub holds what components share besides their engines: instances that use one engine, the
// interval, and the storage of states.
package hub
