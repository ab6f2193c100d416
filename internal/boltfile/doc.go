// SPDX-License-Identifier: Apache-2.0

// Package boltfile finds out whether a file of bbolt, the database of file_storage, can be opened.
//
// bbolt itself ends the process where it meets a damaged page: it reads all pages in a goroutine of its own as it
// opens a file, where nobody can recover from its panic, and through a memory map, where the pages that a truncated
// file lacks are a fault (bbolt v1.5.0, db.go, freepages).
package boltfile
