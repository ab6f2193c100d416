// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

func lock(string) (unlock func(), err error) { return func() {}, nil }
