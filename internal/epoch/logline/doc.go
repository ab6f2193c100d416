// SPDX-License-Identifier: Apache-2.0

// Package logline owns which lines of logs say that something mixed: software that has compared epochs
// or versions itself, and often only prints a warning. It recognises a line, and holds an episode open
// for as long as such lines come. What a line says is not checked.
package logline
