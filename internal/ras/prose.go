// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"fmt"
	"regexp"
	"strconv"
)

// maxProseLine bounds a line of text, in bytes: the longest that NCCL writes has 1,024.
const maxProseLine = 16 << 10

// maxAnswers bounds the answers of one file, as of a loop that asks again and again.
const maxAnswers = 1024

// The lines of an answer.
var (
	proseBegin   = regexp.MustCompile(`^NCCL version (\S+) compiled with CUDA `)
	proseJob     = regexp.MustCompile(`^\s+\d+\s+[\d-]+\s+[\d-]+\s+(\d+)\s+(\d+)$`)
	proseGroup   = regexp.MustCompile(`^\s*(\d+)\s+\d+\s+\d+\s+[\d-]+\s+(\d+)\s+\d+\s+([A-Z]+)\s+([A-Z,]{2,})$`)
	proseHead    = regexp.MustCompile(`^#(\d+)-\d+ \(([0-9a-f]{1,16})\) (INCOMPLETE|ERROR|MISMATCH)$`)
	proseProcess = regexp.MustCompile(`^\s+Process (\d+) on node (\S+) managing GPUs? ([\d,]+)`)
	proseMissing = regexp.MustCompile(`^\s+The missing ranks?: ([\d, -]*\d)$`)
	proseFunc    = regexp.MustCompile(`^\s+Communicator ranks have different (\w+) operation counts$`)
	proseMany    = regexp.MustCompile(`^\s+(\d+) ranks? (?:have|has) (status|launched up to operation|not launched any operations)\s*(\w*)$`)
	proseFault   = regexp.MustCompile(`^\s+(\d+) ranks? reported (.+)$`)
	proseKind    = regexp.MustCompile(`^\s+(Initialization|Asynchronous) errors? on \d+ ranks?$`)
	proseRank    = regexp.MustCompile(`^\s+Ranks? ([\d, -]*\d)(?: has (status|launched up to operation|not launched any operations)\s*(\w*)| reported (.+?))? -- ` +
		`(?:GPUs? ([\d,]+)(?: \(NVML [\d,]+\))? managed by process (\d+) on node (\S+)|\[process information not found\])$`)
	proseTimeouts = regexp.MustCompile(`^\s+Encountered (\d+) communication timeouts?`)
)

type proseParser struct {
	all    []*Status
	status *Status
	sizes  map[int]int // by group of communicators
	inDead bool
	ranks  int

	gone             map[seat]*lost // by host and pid
	goneGPUs, living int            // GPUs of all, and of those that are not dead

	comm  *proseComm
	comms map[uint64]*proseComm
	order []*proseComm
}

// answered ends the answer that is read.
func (p *proseParser) answered() {
	if p.status == nil {
		return
	}
	p.leave()
	for _, c := range p.order {
		p.attribute(c)
		if c.listed() {
			delete(p.status.open, c.group)
		}
		p.status.Comms = append(p.status.Comms, c.Comm)
	}
	p.all = append(p.all, p.status)
	p.status, p.comm, p.comms, p.order = nil, nil, nil, nil
}

func (p *proseParser) line(text string) error {
	if m := proseBegin.FindStringSubmatch(text); m != nil {
		p.answered()
		if len(p.all) >= maxAnswers {
			return fmt.Errorf("got more than %d answers: %w", maxAnswers, errTooLarge)
		}
		p.status = &Status{NCCLVersion: m[1], Prose: true, open: map[int]bool{}}
		p.sizes, p.inDead, p.comms = map[int]int{}, false, map[uint64]*proseComm{}
		p.gone, p.goneGPUs, p.living = map[seat]*lost{}, 0, 0
		return nil
	}
	if p.status == nil || text == "" {
		return nil
	}
	if m := proseHead.FindStringSubmatch(text); m != nil {
		p.inDead = false
		return p.enter(m)
	}
	if p.comm != nil {
		return p.ofComm(text)
	}
	return p.ofJob(text)
}

// ofJob reads a line in front of those of communicators.
func (p *proseParser) ofJob(text string) error {
	switch text {
	case "DEAD":
		p.inDead = true
		return nil
	case "INCOMPLETE", "TIMEOUT":
		p.inDead = false
		return nil
	case "No communicator data collected!":
		p.status.Nothing = true
		return nil
	}
	if m := proseGroup.FindStringSubmatch(text); m != nil {
		group, size := atoi(m[1]), atoi(m[2])
		if size < 1 || size > maxRanks || len(p.sizes) >= maxComms {
			return fmt.Errorf("read communicators: got %s ranks; want 1 to %d, and at most %d groups", m[2], maxRanks, maxComms)
		}
		p.sizes[group] = size
		p.status.Rows++
		if m[3] == statusNone {
			p.status.Left++
		}
		if m[4] != "OK" {
			p.status.Flagged = m[4]
			p.status.open[group] = true
		}
		return nil
	}
	if m := proseJob.FindStringSubmatch(text); m != nil && p.status.GPUs == 0 && len(p.sizes) == 0 {
		p.status.GPUs = atoi(m[2])
		return nil
	}
	if m := proseProcess.FindStringSubmatch(text); m != nil {
		p.lose(seat{host: m[2], pid: atoi(m[1])}, m[3])
		return nil
	}
	p.timeouts(text)
	return nil
}

func (p *proseParser) timeouts(text string) {
	if m := proseTimeouts.FindStringSubmatch(text); m != nil {
		p.status.TimeoutsCount = int64(atoi(m[1]))
	}
}

// enter begins what is said of a communicator.
func (p *proseParser) enter(m []string) error {
	p.leave()
	size, ok := p.sizes[atoi(m[1])]
	if !ok {
		return fmt.Errorf("read communicator %s: got no group %s in the table of communicators; want the whole output of ncclras", m[2], m[1])
	}
	hash, err := parseHash("0x" + m[2])
	if err != nil {
		return err
	}
	c := p.comms[hash]
	if c == nil {
		if len(p.order) >= maxComms {
			return fmt.Errorf("got more than %d communicators: %w", maxComms, errTooLarge)
		}
		c = &proseComm{Comm: Comm{Hash: hash, Size: size}, group: atoi(m[1]), at: map[int]int{}, away: map[int]int{}, budget: &p.ranks}
		p.comms[hash] = c
		p.order = append(p.order, c)
	}
	c.section, c.fault, c.fn, c.tallies = m[3], "", "", nil
	p.comm = c
	return nil
}

func (p *proseParser) leave() {
	if p.comm != nil {
		p.comm.settle()
	}
	p.comm = nil
}

func (p *proseParser) ofComm(text string) error {
	switch text {
	case "Errors", "Warnings", "DEAD", "INCOMPLETE", "TIMEOUT":
		p.leave()
		return p.ofJob(text)
	}
	p.timeouts(text)
	return p.comm.line(text)
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n > maxRanks*maxRanks {
		return -1
	}
	return n
}
