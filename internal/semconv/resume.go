// SPDX-License-Identifier: Apache-2.0

package semconv

// Attributes of lockstep.rank.resumed, what a rank says that it has loaded; the rank is the resource's.
const (
	ResumeStep          = "lockstep.resume.step"           // i, from 0
	ResumeOptimizerStep = "lockstep.resume.optimizer_step" // i, from 0; absent where not said, as the next three
	ResumeDataCursor    = "lockstep.resume.data_cursor"    // s, where the rank's data go on, in the program's own terms
	ResumeRNGDigest     = "lockstep.resume.rng_digest"     // s, 32 hexadecimal digits
	ResumeReplica       = "lockstep.resume.replica"        // s, names the ranks that must agree on the two before
	ResumeNumber        = "lockstep.resume.number"         // i, what of this rank's life in this incarnation, from 1
	ResumeLife          = "lockstep.resume.life"           // s, names the process among those of its rank
)

// Attributes of lockstep.rank.fingerprint, what a slice of a rank's parameters hashes to after a step,
// which is lockstep.step; the rank is the resource's.
const (
	FingerprintHash     = "lockstep.fingerprint.hash"     // s, 16 hexadecimal digits
	FingerprintStart    = "lockstep.fingerprint.start"    // i, first element of the slice
	FingerprintTotal    = "lockstep.fingerprint.total"    // i, elements of all slices
	FingerprintGroup    = "lockstep.fingerprint.group"    // s, names the ranks that hash alike
	FingerprintReplicas = "lockstep.fingerprint.replicas" // i, how many they are; absent where not said
	FingerprintLife     = "lockstep.fingerprint.life"     // s, as lockstep.resume.life
)
