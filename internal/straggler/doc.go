// SPDX-License-Identifier: Apache-2.0

// Package straggler owns the question who makes the others wait, and what that
// costs. It takes operations of all ranks of a job, step by step; puts the
// ranks on one timeline (package clock); divides every rank's step into parts
// that exclude each other; finds the last arriver of every collective; has a judge
// (package judge) draw conclusions from what the ranks did by themselves; and tells a
// conclusion as a finding only where mending its place would shorten the step, else it
// abstains.
//
// The engine has no collector import; the straggler processor and connector and
// the lockstep command are faces of it.
//
// What accuses is the excess of a rank's own, wait-free time per segment (own
// previous rendezvous end to own next arrival) over its peers, which needs no
// shared clock. Wait caused and cost are reported apart: the wait that the last
// arriver caused says nothing of how late the second-last was. The approach
// follows delay analysis (Boehme et al., ACM TOPC 3(2), 2016) and the what-if
// analysis of Lin et al. (OSDI 2025).
package straggler
