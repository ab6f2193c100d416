// SPDX-License-Identifier: Apache-2.0

// Package web owns how the HTTP servers of our components are bounded: how long a client may take, how much it may
// send, and what one address may ask for.
package web
