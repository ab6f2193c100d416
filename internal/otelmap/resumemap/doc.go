// SPDX-License-Identifier: Apache-2.0

// Package resumemap owns how what ranks say that they have loaded looks as log events.
package resumemap
