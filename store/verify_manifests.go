package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// storedManifest is a manifest as it is stored.
type storedManifest struct {
	epoch, parent int64
	kind          string
	attempt       [16]byte
	clock         stream.Micros
	before, after stream.Micros
	sources       []stream.Progress
	// read to buffered are the counts in the order of the columns.
	counts       [manifestCounts]int64
	live         setDigest
	output       [digestSize]byte
	replays      int64
	parentDigest []byte
	digest       []byte
	// real is the digest of the columns as they are stored.
	real       [digestSize]byte
	committed  bool
	hasAttempt bool
}

// The places of columns in the statement verify_manifests and of counts among the counts.
const (
	manifestCounts   = 15
	columnCounts     = 10
	columnLive       = columnCounts + manifestCounts
	columnStatus     = columnLive + 8
	columnHasAttempt = columnStatus + 1

	countRead        = 0
	countLate        = 4
	countQuarantined = 5
	countOutOfShard  = 6
	countPaired      = 8
	countFinal       = 12
	countBuffered    = 14
)

func readManifest(v [][]byte) *storedManifest {
	m := &storedManifest{
		epoch: readInt8(v[2]), kind: string(v[3]), parent: readInt8(v[4]),
		clock: readTime(v[6]), before: readTime(v[7]), after: readTime(v[8]),
		live: readSetDigest(v[columnLive]), replays: readInt8(v[columnLive+2]),
		parentDigest: bytes.Clone(v[columnLive+4]), digest: bytes.Clone(v[columnStatus-1]),
		committed: string(v[columnStatus]) == "committed", hasAttempt: readBool(v[columnHasAttempt]),
	}
	copy(m.attempt[:], v[5])
	copy(m.output[:], v[columnLive+1])
	for i := range m.counts {
		m.counts[i] = readInt8(v[columnCounts+i])
	}
	m.real = sha256.Sum256(appendColumnsOf(nil, v[:columnStatus-1], upTo(columnStatus-1)...))
	m.sources = readSources(v[9])
	return m
}

// upTo gives the places of the first n columns.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// intact tells whether the manifest's digest is that of its columns.
func (m *storedManifest) intact() bool { return bytes.Equal(m.digest, m.real[:]) }

// transitions is how many the manifest counts.
func (m *storedManifest) transitions() int64 {
	var n int64
	for _, count := range m.counts[countPaired : countFinal+1] {
		n += count
	}
	return n
}

func (m *storedManifest) balanced() bool {
	sum := int64(0)
	for _, count := range m.counts[countRead+1 : countOutOfShard+1] {
		sum += count
	}
	return m.counts[countRead] == sum
}

// readSources reads the partitions of a manifest. What can't be read is left out: the digest of
// such a manifest is wrong.
func readSources(text []byte) []stream.Progress {
	var list []sourceState
	if err := json.Unmarshal(text, &list); err != nil {
		return nil
	}
	progress := make([]stream.Progress, 0, len(list))
	for _, s := range list {
		side, err := stream.ParseSide(s.Side)
		watermark, ok := parseMicros(s.Watermark)
		last, ok2 := parseMicros(s.LastEventAt)
		if err != nil || !ok || !ok2 {
			return nil
		}
		progress = append(progress, stream.Progress{
			Partition: stream.Partition{Side: side, Source: s.Source, Number: s.Partition},
			From:      s.From, To: s.To, Watermark: watermark, Idle: s.Idle, LastEventAt: last,
			Identity: s.Identity,
		})
	}
	return progress
}

// parseMicros is the inverse of stream.Micros.String.
func parseMicros(text string) (stream.Micros, bool) {
	switch text {
	case stream.Infinity.String():
		return stream.Infinity, true
	case stream.NegInfinity.String():
		return stream.NegInfinity, true
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return stream.MicrosOf(at), err == nil
}

// history is the manifests that were read, in the order of epochs, and the chain among them.
type history struct {
	all     []*storedManifest
	byEpoch map[int64]*storedManifest
	// restores are those of them that go back, without what somebody put there: a manifest that is not
	// intact was discarded when it was found, and what it really went back behind by that step, too.
	restores []*storedManifest
	// whole is set when no manifest is older than those read.
	whole bool
}

// newHistory takes what was read where retain manifests that count were asked for, 0 for all.
func newHistory(all []*storedManifest, retain int64) *history {
	h := &history{all: all, byEpoch: make(map[int64]*storedManifest, len(all))}
	committed := int64(0)
	for _, m := range all {
		h.byEpoch[m.epoch] = m
		if m.kind == kindRestore && (m.committed || m.intact()) {
			h.restores = append(h.restores, m)
		}
		if m.committed {
			committed++
		}
	}
	h.whole = retain == 0 || committed < retain
	return h
}

// newest is the newest manifest below an epoch that is committed, or that nothing discarded: a
// restore goes back behind what it discards. It is nil for none.
func (h *history) newest(below int64) *storedManifest {
	for _, m := range slices.Backward(h.all) {
		if m.epoch < below && (m.committed || !h.covered(m.epoch)) {
			return m
		}
	}
	return nil
}

// covered tells whether a restore went back behind an epoch: it is discarded.
func (h *history) covered(epoch int64) bool {
	return slices.ContainsFunc(h.restores, func(r *storedManifest) bool {
		return r.parent < epoch && epoch < r.epoch
	})
}

// chain gives the manifests from a newest one back through its parents, oldest first, as far as
// they were read.
func (h *history) chain(newest *storedManifest) []*storedManifest {
	var list []*storedManifest
	for m := newest; m != nil; m = h.byEpoch[m.parent] {
		list = append(list, m)
		if m.parent >= m.epoch {
			break
		}
	}
	slices.Reverse(list)
	return list
}

// checkChain compares the manifests of a chain with their digests and with each other.
func (h *history) checkChain(chain []*storedManifest, found *findings) {
	for i, m := range chain {
		note := func(what string, args ...any) {
			found.note(m.epoch, "epoch", fmt.Sprint(m.epoch), what, args...)
		}
		if !m.intact() {
			note("its digest is not that of its columns")
			continue
		}
		if !m.balanced() {
			note("its counts do not balance")
		}
		if m.parent >= m.epoch {
			note("its parent %d is no earlier epoch", m.parent)
		}
		if !m.hasAttempt {
			// Nothing is built on it: the row says who worked, and the manifest is as it was.
			found.note(always, "attempt", uuidText(m.attempt), "it is missing; epoch %d names it",
				m.epoch)
		}
		if i > 0 {
			h.checkLink(m, chain[i-1], found)
			continue
		}
		h.checkFirst(m, found)
	}
}

func (h *history) checkLink(m, parent *storedManifest, found *findings) {
	switch {
	case !parent.intact(): // named already
	case !bytes.Equal(m.parentDigest, parent.digest):
		found.note(parent.epoch, "epoch", fmt.Sprint(parent.epoch),
			"it is not the manifest that epoch %d was built on", m.epoch)
	case m.before != parent.after:
		found.note(m.epoch, "epoch", fmt.Sprint(m.epoch), "its watermark begins at %s, that of its "+
			"parent ends at %s", m.before, parent.after)
	}
}

// checkFirst looks at the parent of the oldest manifest of a chain, which was not read.
func (h *history) checkFirst(m *storedManifest, found *findings) {
	oldest := h.all[0].epoch
	switch {
	case m.parent == 0 && !bytes.Equal(m.parentDigest, make([]byte, digestSize)):
		found.note(m.epoch, "epoch", fmt.Sprint(m.epoch), "it is the first but names a parent")
	case m.parent >= oldest || m.parent != 0 && h.whole:
		found.note(m.parent, "epoch", fmt.Sprint(m.parent), "it is missing; epoch %d was built on it",
			m.epoch)
	}
}

// checkStatuses compares which manifests are committed with the chain.
func (h *history) checkStatuses(chain []*storedManifest, found *findings) {
	on := epochsOf(chain)
	for _, m := range h.all {
		switch {
		case m.epoch < chain[0].epoch: // where the chain is broken, that is named
		case m.committed && !on[m.epoch]:
			found.note(always, "epoch", fmt.Sprint(m.epoch),
				"it is committed, but the newest epoch is not built on it")
		case !m.committed && on[m.epoch]:
			found.note(always, "epoch", fmt.Sprint(m.epoch),
				"it is discarded, but the newest epoch is built on it")
		}
	}
}

func epochsOf(chain []*storedManifest) map[int64]bool {
	on := make(map[int64]bool, len(chain))
	for _, m := range chain {
		on[m.epoch] = true
	}
	return on
}

// progressAt gives how far each partition was read after the last manifest of a chain, and the
// epoch that said so, in the order of partitions.
func progressAt(chain []*storedManifest) []storedOffset {
	last := map[stream.Partition]storedOffset{}
	for _, m := range chain {
		for _, p := range m.sources {
			p.From = p.To
			last[p.Partition] = storedOffset{p, m.epoch}
		}
	}
	list := make([]storedOffset, 0, len(last))
	for _, o := range last {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b storedOffset) int {
		return cmp.Or(a.Partition.Compare(b.Partition), cmp.Compare(a.epoch, b.epoch))
	})
	return list
}
