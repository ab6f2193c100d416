// SPDX-License-Identifier: Apache-2.0

// Package clockmap owns how edges between clocks and solved clock models look as
// log events. The attributes in ns are exact and count where they are present;
// those in seconds are for people and other tools, and bounds in them are rounded
// outwards.
package clockmap
