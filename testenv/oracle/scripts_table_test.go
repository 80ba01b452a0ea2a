package oracle

import "time"

// seconds gives a rule: join kind, policy, then before, after and lateness.
func seconds(join, policy string, before, after, lateness int) Rule {
	s := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return Rule{
		Version: "v1", Join: join, Provisional: policy,
		Before: s(before), After: s(after), Lateness: s(lateness),
	}
}

var timeScripts = []script{
	{
		about: "window bounds are in, a microsecond outside is out",
		rule:  seconds(JoinFull, Never, 2, 5, 100),
		steps: []scriptStep{{
			in: "L0 o/1 k 50; R0 a/1 k 47.999999; R0 b/1 k 48; R0 c/1 k 55; R0 d/1 k 55.000001; " +
				"R0 e/1 other 50",
			active: "matched o/1 b/1; matched o/1 c/1",
		}},
	},
	{
		about: "a zero window matches equal times",
		rule:  seconds(JoinFull, Eager, 0, 0, 0),
		steps: []scriptStep{{
			in:     "L0 o/1 k 50; R0 a/1 k 50; R0 b/1 k 50.000001",
			active: "matched o/1 a/1; provisional - b/1",
		}},
	},
	{
		about: "provisional when W passes the window end, final when it passes the horizon",
		rule:  seconds(JoinLeft, AtWindowClose, 0, 5, 10),
		steps: []scriptStep{
			{in: "L0 o/1 k 10; L0 p/1 other 15; R0 x/1 kx 15"},
			{
				in:      "L0 p/2 other 15.000001; R0 x/2 kx 15.000001",
				active:  "provisional o/1 -",
				changes: "o/1 -:  -> provisional",
			},
			{in: "L0 p/3 other 25; R0 x/3 kx 25", active: "provisional o/1 -"},
		},
	},
	{
		about: "final and out of the buffer a microsecond past the horizon",
		rule:  seconds(JoinLeft, Never, 0, 5, 10),
		steps: []scriptStep{
			{
				in:      "L0 o/1 k 10; L0 p/1 other 25; R0 x/1 kx 25",
				figures: "accepted 3 duplicate 0 stale 0 expired 0 buffered 3",
			},
			{
				in:      "L0 p/2 other 25.000001; R0 x/2 kx 25.000001",
				active:  "final o/1 -",
				figures: "accepted 2 duplicate 0 stale 0 expired 1 buffered 2",
			},
		},
	},
	{
		about: "a partition that never delivered holds the watermark, the seal lets it go",
		rule:  seconds(JoinFull, Eager, 0, 0, 0),
		lanes: 2,
		steps: []scriptStep{
			{
				in:     "L0 o/1 k 10; L1 p/1 k 190; R0 x/1 kx 190",
				active: "provisional - x/1; provisional o/1 -; provisional p/1 -",
			},
			{
				in: "R1 y/1 ky 20; L0 q/1 k 20",
				active: "final o/1 -; provisional - x/1; provisional - y/1; " +
					"provisional p/1 -; provisional q/1 -",
				figures: "accepted 2 duplicate 0 stale 0 expired 1 buffered 4",
			},
			{
				seal:   true,
				active: "final - x/1; final - y/1; final o/1 -; final p/1 -; final q/1 -",
			},
		},
	},
	{
		about: "out_of_orderness holds the watermark back on its own side",
		rule: Rule{
			Join: JoinLeft, Provisional: Eager,
			OutOfOrderness: [2]time.Duration{10 * time.Second, 0},
		},
		steps: []scriptStep{
			{
				in:     "L0 o/1 k 10; L0 p/1 k 20; R0 x/1 kx 90",
				active: "provisional o/1 -; provisional p/1 -",
			},
			{
				in:     "L0 q/1 k 20.000001",
				active: "final o/1 -; provisional p/1 -; provisional q/1 -",
			},
		},
	},
	{
		about: "up to max_skew ahead moves the watermark, further does not, past max_ahead is refused",
		rule:  seconds(JoinLeft, Eager, 0, 0, 0),
		steps: []scriptStep{
			{
				in:     "L0 o/1 k 10; L0 p/1 k 200.000001; R0 x/1 k 200",
				active: "provisional o/1 -; provisional p/1 -",
			},
			{in: "L0 q/1 k 200", active: "final o/1 -; matched q/1 x/1; provisional p/1 -"},
			{
				in: "L0 r/1 k 1000; L0 s/1 k 1000.000001; L0 t/1 k 2000 deleted",
				active: "final o/1 -; matched q/1 x/1; provisional p/1 -; " +
					"provisional r/1 -",
				aside: "left s/1 far_future; left t/1 far_future",
			},
		},
	},
	{
		about: "a tombstone with a time moves the watermark",
		rule:  seconds(JoinLeft, Eager, 0, 0, 0),
		steps: []scriptStep{{
			in:     "L0 o/1 k 10; L0 p/1 - 20 deleted; R0 x/1 - 20 deleted",
			active: "final o/1 -",
		}},
	},
}

var revisionScripts = []script{
	{
		about: "a partner comes and goes while its event waits",
		rule:  seconds(JoinFull, Eager, 5, 5, 100),
		steps: []scriptStep{
			{in: "L0 o/1 k 10", active: "provisional o/1 -"},
			{
				in: "R0 i/1 k 12", active: "matched o/1 i/1",
				changes: "o/1 -: provisional -> retracted; o/1 i/1:  -> matched",
			},
			{
				in: "R0 i/2 - - deleted", active: "provisional o/1 -",
				changes: "o/1 -: retracted -> provisional; o/1 i/1: matched -> retracted",
			},
			{in: "R0 i/3 k 12", active: "matched o/1 i/3"},
			{
				in: "R0 i/4 k 30", active: "provisional - i/4; provisional o/1 -",
				changes: "- i/4:  -> provisional; o/1 -: retracted -> provisional; " +
					"o/1 i/3: matched -> superseded",
			},
			{
				in: "L0 o/2 k2 10; R0 i/5 k2 10", active: "matched o/2 i/5",
				changes: "- i/4: provisional -> superseded; o/1 -: provisional -> superseded; " +
					"o/2 i/5:  -> matched",
			},
			{
				in:      "L0 o/3 k2 10; R0 i/6 k2 10 deleted",
				active:  "provisional o/3 -",
				changes: "o/2 i/5: matched -> retracted; o/3 -:  -> provisional",
			},
			{
				in:      "L0 o/4 k2 10 deleted",
				changes: "o/3 -: provisional -> retracted",
				figures: "accepted 1 duplicate 0 stale 0 expired 0 buffered 2",
			},
		},
	},
	{
		about: "an epoch leaves only its net effect",
		rule:  seconds(JoinLeft, Eager, 5, 5, 100),
		steps: []scriptStep{
			{in: "L0 o/1 k 10", active: "provisional o/1 -"},
			{
				in:     "L0 p/1 k2 10; L0 p/2 k2 10 deleted; R0 i/1 k 10; R0 i/2 k 11; R0 i/1 k 10",
				active: "matched o/1 i/2",
				changes: "o/1 -: provisional -> retracted; " +
					"o/1 i/2:  -> matched",
				figures: "accepted 2 duplicate 0 stale 3 expired 0 buffered 3",
			},
		},
	},
	{
		about: "the first of two contents stays, within an epoch and after it",
		rule:  seconds(JoinLeft, Eager, 5, 5, 100),
		lanes: 2,
		steps: []scriptStep{
			{
				in:      "L1 o/1 k2 10; L0 o/1 k1 10; L0 o/1 k1 10; L1 o/1 k2 10",
				active:  "provisional o/1 -",
				aside:   "left o/1 conflicting_revision; left o/1 conflicting_revision",
				figures: "accepted 1 duplicate 1 stale 0 expired 0 buffered 1",
			},
			{
				in: "R0 i/1 k1 10; L0 o/1 k1 10.000001; L0 o/1 k1 10 deleted; " +
					`L0 o/1 k1 10 {"n":1}; L0 o/1 k1 10`,
				active: "matched o/1 i/1",
				aside: "left o/1 conflicting_revision; left o/1 conflicting_revision; " +
					"left o/1 conflicting_revision",
				figures: "accepted 1 duplicate 1 stale 0 expired 0 buffered 2",
			},
		},
	},
	{
		about: "a tombstone is held as long as its event, and unknown after",
		rule:  seconds(JoinInner, Never, 5, 5, 10),
		steps: []scriptStep{
			{in: "L0 o/1 k 10; L0 f/1 f 10; R0 f/1 f 10", active: "matched f/1 f/1"},
			{in: "L0 o/2 - 14 deleted", active: "matched f/1 f/1"},
			{
				in: "L0 o/2 - 14 deleted; L0 o/1 k 10", active: "matched f/1 f/1",
				figures: "accepted 0 duplicate 1 stale 1 expired 0 buffered 3",
			},
			{
				in: "L0 f/2 f 25.000001; R0 f/2 f 25.000001", active: "matched f/2 f/2",
				figures: "accepted 2 duplicate 0 stale 0 expired 1 buffered 2",
			},
			{in: "L0 o/1 k 25; R0 i/1 k 25", active: "matched f/2 f/2; matched o/1 i/1"},
		},
	},
	{
		about: "a tombstone without time of an unknown id is held by W",
		rule:  seconds(JoinInner, Never, 0, 5, 0),
		steps: []scriptStep{
			{
				in:      "L0 a/2 - - deleted",
				figures: "accepted 1 duplicate 0 stale 0 expired 0 buffered 1",
			},
			{
				in:      "L0 b/2 - - deleted; L0 f/1 f 10; R0 f/1 f 10",
				active:  "matched f/1 f/1",
				figures: "accepted 3 duplicate 0 stale 0 expired 1 buffered 3",
			},
			{
				in:      "L0 c/2 - - deleted; L0 f/2 f 15; R0 f/2 f 15",
				active:  "matched f/2 f/2",
				figures: "accepted 3 duplicate 0 stale 0 expired 0 buffered 4",
			},
			{
				in:      "L0 f/3 f 15.000001; R0 f/3 f 15.000001; L0 c/1 c 15",
				active:  "matched f/3 f/3",
				figures: "accepted 2 duplicate 0 stale 1 expired 2 buffered 2",
			},
		},
	},
	{
		about: "a forgotten revision that comes back takes up its old identity",
		rule:  seconds(JoinInner, Never, 0, 0, 10),
		steps: []scriptStep{
			{
				in:     "L0 o/1 k 30; R0 i/1 k 30; R0 x/1 x 30; L0 x/1 x 30",
				active: "matched o/1 i/1; matched x/1 x/1",
			},
			{
				in: "L0 o/2 k 20; L0 x/2 x 30.000001; R0 x/2 x 30.000001", active: "matched x/2 x/2",
				changes: "o/1 i/1: matched -> superseded; x/1 x/1: matched -> superseded; " +
					"x/2 x/2:  -> matched",
				figures: "accepted 3 duplicate 0 stale 0 expired 1 buffered 3",
			},
			{
				in: "L0 o/1 k 30", active: "matched o/1 i/1; matched x/2 x/2",
				changes: "o/1 i/1: superseded -> matched",
			},
		},
	},
}

var lateScripts = []script{
	{
		about: "at W minus lateness is on time, a microsecond before is not",
		rule:  seconds(JoinFull, Never, 5, 5, 10),
		steps: []scriptStep{
			{in: "L0 f/1 f 50; R0 f/1 f 50", active: "matched f/1 f/1"},
			{
				in:     "L0 o/1 k 40; R0 i/1 k 39.999999",
				active: "matched f/1 f/1",
				aside:  "right i/1 past_horizon",
			},
		},
	},
	{
		about: "a newer revision is judged by its own time, a tombstone of a buffered event never",
		rule:  seconds(JoinLeft, Eager, 20, 20, 0),
		steps: []scriptStep{
			{in: "L0 o/1 k 50; R0 f/1 f 50", active: "provisional o/1 -"},
			{in: "L0 o/2 k 49", active: "provisional o/1 -", aside: "left o/2 past_horizon"},
			{in: "L0 o/2 k 49 deleted"},
			{in: "L0 p/2 k 49 deleted", aside: "left p/2 past_horizon"},
		},
	},
	{
		about: "a late tombstone counts beside an event of its id that is on time",
		rule:  seconds(JoinLeft, Eager, 20, 20, 0),
		steps: []scriptStep{
			{in: "L0 f/1 f 50; R0 f/1 f 50", active: "matched f/1 f/1"},
			{
				in:      "L0 o/1 k 50; L0 o/2 k 40 deleted; L0 p/1 k 49; L0 p/2 k 40 deleted",
				active:  "matched f/1 f/1",
				aside:   "left p/1 past_horizon; left p/2 past_horizon",
				figures: "accepted 1 duplicate 0 stale 1 expired 0 buffered 3",
			},
		},
	},
	{
		about: "a sealed event is known by its result alone",
		rule:  seconds(JoinLeft, Eager, 0, 5, 0),
		steps: []scriptStep{
			{
				in:     "L0 o/2 k 10; L0 f/1 f 20; R0 i/1 k 11; R0 f/1 f 20",
				active: "matched f/1 f/1; matched o/2 i/1",
			},
			{
				in: "L0 o/2 other 90; L0 o/1 k 10; L0 o/3 k 90; R0 i/2 k 90 deleted; " +
					"R0 i/3 - - deleted",
				active: "matched f/1 f/1; matched o/2 i/1",
				aside: "left o/3 sealed_revision; right i/2 sealed_revision; " +
					"right i/3 sealed_revision",
				figures: "accepted 0 duplicate 1 stale 1 expired 0 buffered 2",
			},
		},
	},
	{
		about: "an event that left without a result is unknown again",
		rule:  seconds(JoinRight, Eager, 0, 5, 0),
		steps: []scriptStep{
			{in: "L0 o/2 k 10; L0 f/1 f 20; R0 f/1 f 20", active: "matched f/1 f/1"},
			{in: "L0 o/2 k 10", active: "matched f/1 f/1", aside: "left o/2 past_horizon"},
			{in: "L0 o/1 k 20; R0 i/1 k 20", active: "matched f/1 f/1; matched o/1 i/1"},
		},
	},
	{
		about: "the last partner of a sealed event withdraws: final at once",
		rule:  seconds(JoinLeft, Never, 5, 20, 0),
		steps: []scriptStep{
			{
				in:     "L0 o/1 k 10; R0 i/1 k 30; R0 j/1 k 30; R0 f/1 f 30; L0 f/1 f 30",
				active: "matched f/1 f/1; matched o/1 i/1; matched o/1 j/1",
			},
			{
				in:     "R0 f/2 f 30.000001; L0 f/2 f 30.000001",
				active: "matched f/2 f/2; matched o/1 i/1; matched o/1 j/1",
			},
			{
				in:      "R0 i/2 k 40",
				active:  "matched f/2 f/2; matched o/1 j/1",
				changes: "o/1 i/1: matched -> superseded",
			},
			{
				in:      "R0 j/2 k 40",
				active:  "final o/1 -; matched f/2 f/2",
				changes: "o/1 -:  -> final; o/1 j/1: matched -> superseded",
			},
		},
	},
	{
		about: "the partner of an event already sealed is deleted",
		rule:  seconds(JoinFull, Never, 20, 10, 0),
		steps: []scriptStep{
			{
				in:     "R0 i/1 k 10; L0 o/1 k 30; L0 f/1 f 30.000001; R0 f/1 f 30.000001",
				active: "matched f/1 f/1; matched o/1 i/1",
			},
			{
				in:      "L0 o/2 - - deleted",
				active:  "final - i/1; matched f/1 f/1",
				changes: "- i/1:  -> final; o/1 i/1: matched -> retracted",
			},
		},
	},
}
