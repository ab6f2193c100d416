// SPDX-License-Identifier: Apache-2.0

// Package spool keeps operations of ranks as Parquet files in a local folder of limited size. Files are
//
//	DIRECTORY/JOB/INCARNATION/steps-FIRST-LAST-NUMBER.parquet
//
// A file is there as a whole or not at all, also after a crash: it is encoded in memory, written under a temporary
// name, synced, and renamed. The oldest files make room for new ones. What is not in a file yet is lost with the
// process; [Config] bounds it by rows, bytes and time.
package spool
