// SPDX-License-Identifier: Apache-2.0

// Package columns writes operations of ranks as Parquet, and reads them back. The format is
// docs/format/parquet.md; one table of columns serves writing, reading and the document.
//
// A writer is used by one goroutine at a time. It starts no goroutine. The reader decodes the files itself: it
// believes no size or count that a file declares, and holds one row group at a time.
package columns
