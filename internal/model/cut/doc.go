// SPDX-License-Identifier: Apache-2.0

// Package cut limits texts that other people send.
//
// A sender chooses the length of every text in OTLP: an engine that keeps texts as they come
// holds as many bytes as a sender likes, and a metric that carries them hands the bytes to
// every scrape. Text cuts a text that is too long where it is read for an engine or written to a
// metric, and puts a digest of the whole behind the prefix, so that two texts that differ stay
// two. A component does not rewrite a text that merely passes through it.
//
// The limits, from the smallest:
//
//   - MaxLabel, 256 bytes, is for the value of a metric's label. A label repeats on every
//     series at every scrape. Host names have at most 253 bytes, job ids and communicators'
//     names far less; Mimir and Loki refuse series whose labels have more than 2048.
//   - MaxName, 1024 bytes, is for what identifies or names something: job, host, process,
//     operation, communicator, link. Kernels of C++ templates have the longest names, mostly
//     less than 1024 bytes; longer ones stay distinct by the digest.
//   - MaxPath, 4096 bytes, is Linux's PATH_MAX. It bounds paths, and texts that package
//     otelmap/strict refuses rather than cuts when they are too long.
//   - MaxLong, 65536 bytes, is for what a person reads as a whole and an engine keeps few of:
//     stack traces, evidence in JSON, sentences. A stack trace of 64 Python frames of 250
//     bytes is a quarter of that, evidence of 1,000 ranks is of that size.
package cut
