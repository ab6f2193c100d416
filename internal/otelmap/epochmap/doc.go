// SPDX-License-Identifier: Apache-2.0

// Package epochmap owns how observations of persistence domains look as log events.
package epochmap
