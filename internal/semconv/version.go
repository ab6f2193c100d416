// SPDX-License-Identifier: Apache-2.0

package semconv

// Attributes of a lockstep.host.fact of kind version, one observed version of a node. The resource
// is the node: host.name, host.id.
const (
	VersionDomain   = "lockstep.version.domain"   // s: nvidia_kernel_driver, nvidia_user_driver, cuda, gpu_vbios, gpu_gsp_firmware, fabric_manager, nic_firmware, nic_driver, kernel, container_image
	VersionValue    = "lockstep.version.value"    // s, as its source spells it
	VersionUnit     = "lockstep.version.unit"     // s, a GPU's UUID or a NIC's device; absent where it holds for all of the model
	VersionModel    = "lockstep.version.model"    // s, of the unit: product, board, kernel module
	VersionUnits    = "lockstep.version.units"    // i, for how many units it holds
	VersionOf       = "lockstep.version.of"       // i, how many facts of the domain the look made
	VersionWitness  = "lockstep.version.witness"  // s, what it was read from
	VersionLife     = "lockstep.version.life"     // i, when the observer began, Unix ns by its host
	VersionRevision = "lockstep.version.revision" // i, of that observer's looks
)

// FactSourceFleet is the FactSource of what the fleet_version receiver tells.
const FactSourceFleet = "fleet_version"
