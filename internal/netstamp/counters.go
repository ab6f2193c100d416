// SPDX-License-Identifier: Apache-2.0

package netstamp

import "sync/atomic"

// counters are Counters that several goroutines count.
type counters struct {
	packetsSent, packetsReceived      atomic.Int64
	sentStamps, receivedStamps        [4]atomic.Int64
	sendErrors, sendBusy              atomic.Int64
	truncated, overflow, peerErrors   atomic.Int64
	unknownStamps, missingStamps      atomic.Int64
	pendingOverflow, malformedControl atomic.Int64
	receivedDropped, sentDropped      atomic.Int64
	resets                            atomic.Int64
}

func (c *counters) snapshot() Counters {
	s := Counters{
		PacketsSent:      c.packetsSent.Load(),
		PacketsReceived:  c.packetsReceived.Load(),
		SendErrors:       c.sendErrors.Load(),
		SendBusy:         c.sendBusy.Load(),
		Truncated:        c.truncated.Load(),
		Overflow:         c.overflow.Load(),
		PeerErrors:       c.peerErrors.Load(),
		UnknownStamps:    c.unknownStamps.Load(),
		MissingStamps:    c.missingStamps.Load(),
		PendingOverflow:  c.pendingOverflow.Load(),
		ReceivedDropped:  c.receivedDropped.Load(),
		SentDropped:      c.sentDropped.Load(),
		MalformedControl: c.malformedControl.Load(),
		Resets:           c.resets.Load(),
	}
	for kind := range s.SentStamps {
		s.SentStamps[kind] = c.sentStamps[kind].Load()
		s.ReceivedStamps[kind] = c.receivedStamps[kind].Load()
	}
	return s
}
