// SPDX-License-Identifier: Apache-2.0

// Stages measures what two stages behind Kafka cost for jobs of growing size: a real broker, and collectors with
// the published configurations, each a process of its own. docs/scale.md has what came of it.
package main
