// SPDX-License-Identifier: Apache-2.0

// Package hub makes a connector of an engine, and holds what other components share: instances that use
// one engine, the interval, and the storage of states. docs/patterns.md shows how to write a connector
// with it.
//
// # What a refusal means
//
// It depends on what the next component refuses. This is the one place that decides it:
//
//   - A source that can be read again, such as a ring or a file: the receiver stops reading, and the
//     source keeps the data ([deliver.Traces], [deliver.Logs]).
//   - Spans that pass through, and step traces: the error goes back to the sender. Nothing waits after it
//     was acknowledged. The error is permanent where the engine has used the spans: the same spans again
//     would be duplicates.
//   - Findings, and other events that have a key: the hub keeps the newest revision of each, closed ones
//     too, and delivers it again. Their number and bytes are bounded. A call that is refused for good is
//     divided, and of those refused again and again some are smaller: one event, or the size, costs no
//     other. One that is dropped is counted: for lack of room, since the refusal is permanent, or at the
//     end.
//   - Cumulative series: the next flush has their values.
//
// What comes to a hub waits in an inbox while the engine works. A batch that finds no room within
// [deliver.Patience] is refused as a whole, with an error that asks the sender to repeat it.
//
// A next component that panics has refused for good what it got. One that does not return holds up the
// sender for [deliver.Patience] at most, and neither the other outputs nor the end of the collector.
package hub
