// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package queuestorageextension keeps the sending queues of exporters in another storage extension.
//
// A queue that starts takes what was being sent when the process before ended, deletes it, and then
// stores each request again under a new key (exporterhelper v0.165.0, persistent_queue.go). A kill
// in between loses requests that were acknowledged. This package does both in one transaction for
// each request.
package queuestorageextension
