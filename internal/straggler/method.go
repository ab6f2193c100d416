package straggler

// Methods by which stragglers are named.
const (
	MethodLockstep = "lockstep"
	MethodKAIR     = "kair"
)
