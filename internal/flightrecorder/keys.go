// SPDX-License-Identifier: Apache-2.0

package flightrecorder

// key is a key of a dump that means something to the reader.
type key uint8

const (
	keyNew     key = iota // not looked up yet
	keyUnknown            // none of those below

	// Of an entry alone: a dict that has one of them is an entry.
	keyRecord
	keyColl
	keySeq
	keyP2P
	keyOp
	keyProfilingName
	keyCreated

	// Of an entry.
	keyFrames
	keyPG
	keyProcessGroup
	keyThreadName
	keyThreadID
	keyDuration
	keyIn
	keyInTypes
	keyOut
	keyOutTypes
	keyState
	keyStartSeen
	keyEndSeen
	keyRetired
	keyTimeout
	keyIsP2P

	// Of a frame.
	keyName // of a group, too
	keyFilename
	keyLine

	// Of a group and its status.
	keyDesc
	keyRanks
	keyEnqueued
	keyStarted
	keyCompleted

	// Of the whole.
	keyVersion
	keyGroups
	keyStatus
	keyEntries
	keyLibVersion
)

var keys = map[string]key{
	"record_id": keyRecord, "collective_seq_id": keyColl, "seq_id": keySeq, "p2p_seq_id": keyP2P, "op_id": keyOp,
	"profiling_name": keyProfilingName, "time_created_ns": keyCreated,
	"frames": keyFrames, "pg_id": keyPG, "process_group": keyProcessGroup,
	"thread_name": keyThreadName, "thread_id": keyThreadID, "duration_ms": keyDuration,
	"input_sizes": keyIn, "input_dtypes": keyInTypes, "output_sizes": keyOut, "output_dtypes": keyOutTypes,
	"state": keyState, "time_discovered_started_ns": keyStartSeen, "time_discovered_completed_ns": keyEndSeen,
	"retired": keyRetired, "timeout_ms": keyTimeout, "is_p2p": keyIsP2P,
	"name": keyName, "filename": keyFilename, "line": keyLine,
	"desc": keyDesc, "ranks": keyRanks, "last_enqueued_collective": keyEnqueued,
	"last_started_collective": keyStarted, "last_completed_collective": keyCompleted,
	"version": keyVersion, "pg_config": keyGroups, "pg_status": keyStatus, "entries": keyEntries,
	"nccl_version": keyLibVersion, "comm_lib_version": keyLibVersion,
}

func keyOf(b []byte) key {
	if k, ok := keys[string(b)]; ok {
		return k
	}
	return keyUnknown
}

// ofEntry reports whether only entries have the key.
func (k key) ofEntry() bool { return k >= keyRecord && k <= keyCreated }
