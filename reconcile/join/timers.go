package join

import "github.com/tallystick/tallystick/reconcile/stream"

// timer wakes a row when the low watermark passes at.
type timer struct {
	at  stream.Micros
	row *row
}

// timers is a binary heap, earliest first. Timers of rows that left memory stay until they come up.
type timers []timer

func (h *timers) push(t timer) {
	*h = append(*h, t)
	s := *h
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if s[parent].at <= t.at {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = t
}

// compact drops the timers of rows that are no longer live, so that those rows can be freed.
func (h *timers) compact() {
	kept := timers{}
	for _, t := range *h {
		if t.row.phase == live {
			kept.push(t)
		}
	}
	*h = kept
}

func (h *timers) pop() timer {
	s := *h
	first, last := s[0], s[len(s)-1]
	s[len(s)-1] = timer{}
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].at < s[child].at {
			child++
		}
		if last.at <= s[child].at {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = last
	}
	return first
}
