// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package fleetversionreceiver tells which versions of drivers, firmware and kernel a node runs. How
// they are read, and what of them is told over time, is the knowledge of internal/fleet; this package
// owns when it is looked, that nothing that hangs holds it up, and the delivery.
package fleetversionreceiver
