// SPDX-License-Identifier: Apache-2.0

// Package rastest is a server that speaks the protocol of NCCL's RAS, for tests: it is made
// from the protocol's description and from NCCL's own client, and no process of NCCL runs
// behind it.
package rastest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// Server answers as a process of NCCL does.
type Server struct {
	// Address is where it listens.
	Address string

	mu       sync.Mutex
	answers  []string // of VERBOSE STATUS, in turn
	next     int
	prose    string
	stalled  bool
	textOnly bool
	silent   bool
	commands []string
	wait     sync.WaitGroup
}

// Start starts a server that answers in turn with the given answers, as JSON.
func Start(t *testing.T, answers ...string) *Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	s := &Server{Address: l.Addr().String(), answers: answers}
	s.wait.Add(1)
	go s.accept(l)
	t.Cleanup(func() {
		_ = l.Close()
		s.wait.Wait()
	})
	return s
}

// TextOnly makes it answer as servers before NCCL 2.28.7.
func (s *Server) TextOnly() { s.set(func() { s.textOnly = true }) }

// Prose is what it answers to STATUS, unless JSON was asked for.
func (s *Server) Prose(text string) { s.set(func() { s.prose = text }) }

// Stall makes it end no status: the connection stays as it is.
func (s *Server) Stall() { s.set(func() { s.stalled = true }) }

// Silent makes it take connections and say nothing.
func (s *Server) Silent() { s.set(func() { s.silent = true }) }

// Answer replaces what it answers.
func (s *Server) Answer(answers ...string) { s.set(func() { s.answers, s.next = answers, 0 }) }

// Commands lists what it was told.
func (s *Server) Commands() (list []string) {
	s.set(func() { list = append(list, s.commands...) })
	return list
}

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *Server) accept(l net.Listener) {
	defer s.wait.Done()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.wait.Add(1)
		go func() {
			defer s.wait.Done()
			defer conn.Close()
			s.serve(conn)
		}()
	}
}

func (s *Server) serve(conn net.Conn) {
	in := bufio.NewScanner(conn)
	for in.Scan() {
		answer, more := s.answer(in.Text())
		if _, err := fmt.Fprint(conn, answer); err != nil || !more {
			return
		}
	}
}

// answer answers one command; after a status the connection is closed.
func (s *Server) answer(line string) (answer string, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, line)
	command := strings.ToLower(line)
	switch {
	case s.silent:
		return "", true
	case strings.HasPrefix(command, "client protocol "):
		return "SERVER PROTOCOL 2\n", true
	case strings.HasPrefix(command, "timeout "):
		return "OK\n", true
	case strings.HasPrefix(command, "set format ") && !s.textOnly:
		return "OK\n", true
	case command == "verbose status" && len(s.answers) > 0:
		answer = s.answers[s.next%len(s.answers)]
		s.next++
		return answer, false
	case command == "status" && s.prose != "":
		return s.prose, s.stalled
	}
	return "ERROR: Unknown command " + line + "\n", true
}

// Prose is what STATUS begins with, and an end.
func Prose(version string) string {
	return "NCCL version " + version + " compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 13000\n\n" +
		"Job summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n" +
		"(total)   per node  per process    (total)  (total)\n      2          8            1         16       16\n\nCommunicators..."
}

// Member is a rank of a communicator.
type Member struct {
	Rank, PID   int
	Host        string
	AsyncError  int
	Aborted     bool
	AllReduce   int64
	AllGather   int64
	Missing     bool // it did not answer
	Responsive  bool // it answered, and is no member
	Dead        bool
	NoSuchProc  bool // its process is not known
	WithoutInit bool
}

// Comm is a communicator.
type Comm struct {
	Hash    uint64
	Members []Member
}

// JSON writes what NCCL answers.
func JSON(comms ...Comm) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"nccl_version\": \"2.28.7\",\n  \"cuda_runtime_version\": 12090,\n  \"cuda_driver_version\": 12090,\n"+
		"  \"timestamp\": \"2026-11-23 10:00:00\",\n  \"communicators_count\": %d,\n  \"communicators\": [\n", len(comms))
	for i, c := range comms {
		if i > 0 {
			b.WriteString(",\n")
		}
		c.write(&b)
	}
	b.WriteString("\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.012,\n    \"timeouts_count\": 0\n  }\n}\n")
	return b.String()
}

func (c *Comm) write(b *strings.Builder) {
	var there, missing []string
	for i := range c.Members {
		if m := &c.Members[i]; m.Missing {
			missing = append(missing, m.missing())
		} else {
			there = append(there, m.there())
		}
	}
	fmt.Fprintf(b, "    {\n      \"hash\": \"0x%x\",\n      \"secondary_hash\": \"0x1:0x2\",\n      \"size\": %d,\n      \"ranks_count\": %d,\n"+
		"      \"missing_ranks_count\": %d,\n      \"ranks\": [\n%s\n      ],\n      \"missing_ranks\": [\n%s\n      ]\n    }",
		c.Hash, len(c.Members), len(there), len(missing), strings.Join(there, ",\n"), strings.Join(missing, ",\n"))
}

func (m *Member) place() string {
	host, pid := m.Host, m.PID
	if m.NoSuchProc {
		host, pid = "unknown", -1
	}
	return fmt.Sprintf("          \"rank\": %d,\n          \"host\": %q,\n          \"pid\": %d,\n          \"cuda_dev\": 0,\n          \"nvml_dev\": 0,\n", m.Rank, host, pid)
}

func (m *Member) there() string {
	init := 0
	if m.WithoutInit {
		init = 7
	}
	return fmt.Sprintf("        {\n%s          \"status\": {\n            \"init_state\": %d,\n            \"async_error\": %d,\n"+
		"            \"finalize_called\": false,\n            \"destroy_flag\": false,\n            \"abort_flag\": %t\n          },\n"+
		"          \"collective_counts\": {\n            \"Broadcast\": 0,\n            \"Reduce\": 0,\n            \"AllGather\": %d,\n"+
		"            \"ReduceScatter\": 0,\n            \"AllReduce\": %d\n          }\n        }", m.place(), init, m.AsyncError, m.Aborted, m.AllGather, m.AllReduce)
}

func (m *Member) missing() string {
	return fmt.Sprintf("        {\n%s          \"status\": {\n            \"unresponsive\": %t,\n            \"considered_dead\": %t\n          }\n        }",
		m.place(), !m.Responsive, m.Dead)
}
