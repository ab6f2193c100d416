// SPDX-License-Identifier: Apache-2.0

// Package sequencemap writes the numbers of internal/sequence on spans, and reads them.
package sequencemap
