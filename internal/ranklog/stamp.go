// SPDX-License-Identifier: Apache-2.0

package ranklog

import "bytes"

// moment is a time of the clock of the process that wrote a line, ms. Lines of the watchdog have no
// year, so that it counts from the beginning of one, of months of 31 days; 0: the line has no time.
type moment int64

const (
	second = moment(1000)
	day    = 86400 * second
)

// maxStamp bounds where in a line a time is looked for, bytes.
const maxStamp = 96

// stampOf reads the time that a process wrote itself: "[E1116 10:00:00.100", "2026-11-16 10:00:00,123".
// A time with a zone is that of a collector of logs: it says when a line was given out, and lines may
// wait in a buffer before.
func stampOf(s []byte) moment {
	s = s[:min(len(s), maxStamp)]
	for i := 0; i+len("1116 10:00:00") <= len(s); i++ {
		if s[i] < '0' || s[i] > '9' || i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
			continue
		}
		rest := s[i:]
		switch {
		case i > 0 && bytes.IndexByte([]byte("IWEF"), s[i-1]) >= 0 && digits(rest, 4) && rest[4] == ' ':
			if m := moment2(rest[0:2], rest[2:4], rest[5:]); m > 0 {
				return m
			}
		case i > 0 && bytes.IndexByte([]byte("IWEF"), s[i-1]) >= 0 && digits(rest, 3) && rest[3] == ' ': // of a month below 10
			if m := moment2([]byte{'0', rest[0]}, rest[1:3], rest[4:]); m > 0 {
				return m
			}
		case len(rest) >= len("2026-11-16 10:00:00") && digits(rest, 4) && rest[4] == '-' && rest[7] == '-' && (rest[10] == ' ' || rest[10] == 'T' || rest[10] == '_'):
			if zoned(rest[19:]) {
				continue
			}
			if m := moment2(rest[5:7], rest[8:10], rest[11:]); m > 0 {
				return m
			}
		}
	}
	return 0
}

// moment2 reads a month, a day, and a time "10:00:00"; 0: it is none.
func moment2(month, dayOf, clock []byte) moment {
	if len(clock) < len("10:00:00") || !digits(month, 2) || !digits(dayOf, 2) || !digits(clock, 2) || clock[2] != ':' || !digits(clock[3:], 2) || clock[5] != ':' || !digits(clock[6:], 2) {
		return 0
	}
	two := func(b []byte) moment { return moment(b[0]-'0')*10 + moment(b[1]-'0') }
	m := (two(month)*31+two(dayOf))*day + (two(clock)*3600+two(clock[3:])*60+two(clock[6:]))*second
	if len(clock) >= len("10:00:00.100") && (clock[8] == '.' || clock[8] == ',') && digits(clock[9:], 3) {
		m += two(clock[9:])*10 + moment(clock[11]-'0')
	}
	return m
}

// zoned reports whether a zone follows a time, behind its fraction.
func zoned(s []byte) bool {
	i := 0
	for i < len(s) && (s[i] == '.' || s[i] == ',' || s[i] >= '0' && s[i] <= '9') {
		i++
	}
	return i < len(s) && (s[i] == 'Z' || s[i] == '+' || s[i] == '-')
}

func digits(s []byte, n int) bool {
	if len(s) < n {
		return false
	}
	for _, c := range s[:n] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
