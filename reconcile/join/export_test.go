package join

// Size is what a State keeps in memory, in entries.
type Size struct{ Rows, Groups, Timers, Leaving, Recent int }

// Size counts what the state keeps, for tests of its bounds.
func (s *State) Size() Size {
	recent := 0
	for g := s.recent.first; g != nil; g = g.next {
		recent++
	}
	return Size{
		Rows: s.Held(), Groups: s.groups.len(), Timers: len(s.timers),
		Leaving: len(s.leaving), Recent: recent,
	}
}
