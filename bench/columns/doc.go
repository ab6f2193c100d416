// SPDX-License-Identifier: Apache-2.0

// Command columns prints how many bytes an operation takes as Parquet, against OTLP with zstd of the same
// operations: see bench/README.md.
//
//	columns [-data FOLDER] [-columns]
package main
