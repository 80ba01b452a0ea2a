package stream

// Progress is how far one partition has been read: where an epoch found it and where it leaves it.
type Progress struct {
	Partition
	// From and To are source positions, opaque outside the source; empty is the beginning.
	From, To string
	// Watermark is the partition watermark after the epoch.
	Watermark Micros
	// Idle is true while the partition has stopped holding its side's watermark (idle_after).
	Idle bool
	// LastEventAt is the database clock of the epoch that last read a record here.
	LastEventAt Micros
	// Identity is what the source says it is (file head, table oid); checked on the next start.
	Identity string
}

// BufferRow is one event revision that waits in the buffer, or waited there and is still held in
// memory because a partner of it can still change.
type BufferRow struct {
	Event
	// Horizon is the event time past which the row leaves the buffer.
	Horizon Micros
	// AddedEpoch is the epoch that added the row.
	AddedEpoch int64
	// Position is the source position just past the event.
	Position string
	Source   string
	Number   int32
	Side     Side
	// Spilled rows need not be in memory: they are found by key and by horizon.
	Spilled bool
}

// Kind is the kind of a result row.
type Kind string

// The three kinds of result.
const (
	Pair      Kind = "pair"
	LeftOnly  Kind = "left_only"
	RightOnly Kind = "right_only"
)

// OnlyKind gives the kind of a side's unmatched row.
func OnlyKind(s Side) Kind {
	if s == Left {
		return LeftOnly
	}
	return RightOnly
}

// Status is where a result row stands.
type Status string

// The statuses of semantics: the first three are active.
const (
	Matched     Status = "matched"
	Provisional Status = "provisional"
	Final       Status = "final"
	Retracted   Status = "retracted"
	Superseded  Status = "superseded"
)

// Active tells whether a row of this status is in the view results.
func (s Status) Active() bool { return s == Matched || s == Provisional || s == Final }

// Causes of a transition.
const (
	CauseJoined          Reason = "joined"
	CauseUnmatched       Reason = "unmatched"
	CauseHorizonPassed   Reason = "horizon_passed"
	CausePartnerArrived  Reason = "partner_arrived"
	CausePartnerWithdrew Reason = "partner_withdrew"
	CauseRevised         Reason = "revised"
	CauseDeleted         Reason = "deleted"
)

// MatchID is the 32-byte identity of a result.
type MatchID [32]byte

// Member is one side of a result: which event revision, and when.
type Member struct {
	ID       string
	Revision int64
	Time     Micros
}

// Result is one result row as the store keeps it.
type Result struct {
	MatchID MatchID
	Kind    Kind
	Status  Status
	// Left and Right are the members; the absent side of an only-row has an empty ID.
	Left, Right Member
	Key         string
	// Horizon is when the row can no longer change: the later horizon of its members.
	Horizon Micros
	// Verdict is agree or differ on a compared pair, else empty; Differences is its JSON array.
	Verdict     string
	Differences string
}

// Change is one result row moved to a new status by an epoch.
type Change struct {
	Result
	Cause Reason
	// Fresh is true where no row of this identity is known to exist; the store inserts it
	// without looking, and falls back to an upsert when the identity is there after all.
	Fresh bool
}

// Correction is an event that came too late for live state.
type Correction struct {
	Partition
	Event
	Position string
	Reason   Reason
	// From and To bound the event times whose results it touches; both may be infinite.
	From, To Micros
}

// Quarantined is a record set aside whole.
type Quarantined struct {
	Partition
	Position string
	Reason   Reason
	Raw      []byte
}

// Counts are the figures of one epoch's manifest, in rows.
// Read = Accepted + Duplicate + Stale + Late + Quarantined + OutOfShard.
//
// OutOfShard counts the records that another shard speaks for, also where this one keeps a row to
// remember them by. The owner of its key speaks for a record. For a tombstone without a key, or a
// record that is no event, it is the owner of the key of the revision held, else one shard by its
// position: so it can be counted by more shards than one, or by none where shards know different
// revisions. A revision that moves an event which is sealed here is Late here and whatever the owner
// of its new key makes of it there.
type Counts struct {
	Read, Accepted, Duplicate, Stale, Late, Quarantined, OutOfShard int64
	// Ahead counts accepted events further ahead of the clock than max_skew.
	Ahead int64
	// Paired to Final count result transitions by what they did.
	Paired, ProvisionalOpened, Retracted, Superseded, Final int64
	// Expired counts rows that left the buffer by horizon; Buffered is what it holds after.
	Expired, Buffered int64
}

// Count counts one transition by the status that it led to.
func (c *Counts) Count(to Status) {
	switch to {
	case Matched:
		c.Paired++
	case Provisional:
		c.ProvisionalOpened++
	case Retracted:
		c.Retracted++
	case Superseded:
		c.Superseded++
	case Final:
		c.Final++
	}
}

// Balanced tells whether every record read is accounted for.
func (c *Counts) Balanced() bool {
	return c.Read == c.Accepted+c.Duplicate+c.Stale+c.Late+c.Quarantined+c.OutOfShard
}

// Delta is everything one epoch changes. It is complete: applied to the state before the epoch it
// gives the state after it.
type Delta struct {
	Epoch int64
	// Clock is the database clock the epoch was judged by.
	Clock                           Micros
	WatermarkBefore, WatermarkAfter Micros
	Added                           []BufferRow
	// Retired are the rows that a newer revision replaced, Expired those that left the buffer
	// because the watermark passed their horizon: whole rows as they were added, each an earlier
	// epoch's or in Added. Nobody changes what they point at.
	Retired, Expired []*BufferRow
	// Changes are in the order their transitions are numbered: withdrawals before publications.
	Changes     []Change
	Corrections []Correction
	Quarantined []Quarantined
	Progress    []Progress
	Counts      Counts
}

// Range is a half-open range of event times: From <= t < To.
type Range struct{ From, To Micros }

// Needs is what an epoch must know of the stored state before it can be joined: everything of
// these events and keys, and the rows whose horizon lies in one of the ranges.
type Needs struct {
	// IDs lists event ids by side, Keys the join keys. Neither holds a value twice.
	IDs  [2][]string
	Keys []string
	// Results lists ids by side of which nothing but the results is needed.
	Results [2][]string
	// Due are ranges of horizons: of rows that leave the buffer and, if there is a second one, of rows
	// whose window closes. Most of them change no result: all of its key is needed only of a row of a side
	// in Keeps that has no partner, and in the second range no active result at all.
	Due []Range
	// Keeps tells of which sides the unmatched events are results.
	Keeps [2]bool
	// DueMax bounds the rows read for each range, in horizon order; they are in memory for one epoch.
	DueMax int
}

// Empty tells whether nothing is needed.
func (n *Needs) Empty() bool {
	return len(n.IDs[Left])+len(n.IDs[Right])+len(n.Keys)+
		len(n.Results[Left])+len(n.Results[Right])+len(n.Due) == 0
}

// Found answers Needs from the stored state as of the watermark asked with.
type Found struct {
	// Rows are the live buffer rows of the ids, and all live rows of every key concerned: the
	// keys asked for, the keys of those ids' rows, the keys of due rows where all is needed.
	Rows []BufferRow
	// Expired are the other rows of the first range; some can be in Rows as well.
	Expired []BufferRow
	// Results are the active results of the rows, of both kinds of ids asked for (an id that is sealed
	// has only these), and of the partners in those results; none twice.
	Results []Result
	// DueTo says, for each range, up to which horizon (exclusive) all that is needed of its rows was
	// found: the range's To unless DueMax cut it short.
	DueTo []Micros
}
