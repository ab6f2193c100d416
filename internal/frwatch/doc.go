// SPDX-License-Identifier: Apache-2.0

// Package frwatch owns how Flight Recorder dumps come to us: which files are dumps of which
// job and when they are whole, what PyTorch's debug server and named pipe are asked, which
// dumps are of one incident, and what is known of those that did not come. What a dump
// means is the knowledge of internal/flightrecorder.
package frwatch
