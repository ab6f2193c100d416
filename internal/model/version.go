// SPDX-License-Identifier: Apache-2.0

package model

// VersionDomain is a part of a node that has a version of its own and is updated by itself.
type VersionDomain string

// Domains of versions.
const (
	VersionKernelDriver  VersionDomain = "nvidia_kernel_driver" // the module that is loaded
	VersionUserDriver    VersionDomain = "nvidia_user_driver"   // the libraries beside it
	VersionCUDA          VersionDomain = "cuda"                 // the newest that the driver supports
	VersionVBIOS         VersionDomain = "gpu_vbios"
	VersionGSP           VersionDomain = "gpu_gsp_firmware"
	VersionFabricManager VersionDomain = "fabric_manager"
	VersionNICFirmware   VersionDomain = "nic_firmware"
	VersionNICDriver     VersionDomain = "nic_driver"
	VersionKernel        VersionDomain = "kernel"
	VersionImage         VersionDomain = "container_image"
	// VersionNCCL is of a process, and told by its own records. What a node tells is of one of its
	// processes: it is counted, and nobody is judged by it.
	VersionNCCL VersionDomain = "nccl"
)

// VersionDomains are all, in the order in which they are told.
var VersionDomains = []VersionDomain{
	VersionKernelDriver, VersionUserDriver, VersionCUDA, VersionVBIOS, VersionGSP, VersionFabricManager,
	VersionNICFirmware, VersionNICDriver, VersionKernel, VersionImage, VersionNCCL,
}

// OfHardware reports whether versions of a domain compare only within one model of it: those of
// different boards are counted apart.
func (d VersionDomain) OfHardware() bool { return d == VersionVBIOS || d == VersionNICFirmware }

// VersionObservation is what one look at a node found of one domain: of all of its units of one
// model, or of one unit where they differ.
type VersionObservation struct {
	Time             int64 // Unix ns of the look; for people, it decides nothing
	HostName, HostID string
	Domain           VersionDomain
	// Unit is a GPU's UUID or a NIC's device; empty where it holds for all of the node's units of
	// the model.
	Unit string
	// Model is what the unit is: a board, a product, a kernel module.
	Model   string
	Version string
	Units   int64 // for how many units it holds
	Witness string
	// Of is how many observations of this domain the look made: with fewer, a part was lost.
	Of int64
	// Life is when the observer began, Unix ns by its host; Revision counts its looks. Of two
	// observations of a domain the one of the later life holds, then the one of the higher revision.
	Life, Revision int64
}

// Kinds of facts that a node tells of its own versions.
const (
	FactVersion               = "version"
	FactDriverMismatch        = "driver_mismatch"         // what is loaded, and what would drive it, differ
	FactFabricManagerMismatch = "fabric_manager_mismatch" // it must be of the driver's version
)

// NodeFact is something observed of a node as a whole.
type NodeFact struct {
	Time             int64 // Unix ns
	HostName, HostID string
	Source, Kind     string
	What             string // in words
}
