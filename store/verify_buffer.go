package store

import (
	"context"
	"fmt"
	"sort"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// bufferPast is the buffer as it was after each epoch of a chain, as far as its digest tells. A row
// is live from the epoch that added it until one replaces it or one's watermark passes its horizon,
// so one pass over the rows that are stored gives the digest of every epoch: the row's hash enters
// at the first and leaves at the last, and what is live is the sum up to there.
type bufferPast struct {
	chain []*storedManifest
	// sums, counts and bad hold at each epoch how much more there is than at the one before; bad
	// counts rows whose hash is wrong.
	sums        []setDigest
	counts, bad []int64
	rows        int64
}

// bufferPast reads all stored rows; names the bad ones, and those of unknown epochs.
func (d *head) bufferPast(
	ctx context.Context, chain []*storedManifest, found *findings,
) (*bufferPast, error) {
	chain = d.kept(chain)
	var past *bufferPast
	var here findings
	reset := func() {
		here = findings{}
		past = &bufferPast{
			chain: chain, sums: make([]setDigest, len(chain)+1),
			counts: make([]int64, len(chain)+1), bad: make([]int64, len(chain)+1),
		}
	}
	on := epochsOf(chain)
	var dec decoder
	err := d.readBuffer(ctx, reset, &dec, func(v [][]byte, r *stored) {
		past.add(r)
		name := func() string { return bufferName(v[2], v[3], r.added) }
		switch {
		case r.damaged:
			here.note(always, "buffer", name(), "its row_hash is not that of its columns")
		case d.unknown(chain, on, r.added):
			here.note(r.added, "buffer", name(), "it was added in no epoch that counts")
		case r.retired != 0 && d.unknown(chain, on, r.retired):
			here.note(r.retired, "buffer", name(), "it was replaced in epoch %d, which does not count",
				r.retired)
		case r.retired != 0 && r.retired <= r.added:
			here.note(always, "buffer", name(), "it was replaced in epoch %d, before it was added",
				r.retired)
		}
	})
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(past.sums); i++ {
		past.sums[i].merge(past.sums[i-1])
		past.counts[i] += past.counts[i-1]
		past.bad[i] += past.bad[i-1]
	}
	found.merge(&here)
	return past, nil
}

// kept gives the epochs of a chain whose buffer rows are kept; the newest one's always are.
func (d *head) kept(chain []*storedManifest) []*storedManifest {
	if d.purged > d.tip().epoch { // which is no epoch
		return chain
	}
	purged := sort.Search(len(chain), func(i int) bool { return chain[i].epoch >= d.purged })
	return chain[purged:]
}

// unknown tells whether an epoch is not on the chain although it would be.
func (d *head) unknown(chain []*storedManifest, on map[int64]bool, epoch int64) bool {
	if len(chain) == 0 || on[epoch] || epoch < chain[0].epoch {
		return false
	}
	goesAnyway := epoch > chain[len(chain)-1].epoch && epoch <= d.tip().epoch
	return !goesAnyway
}

// stored is a row of the buffer as far as its liveness goes.
type stored struct {
	added, retired int64 // retired is 0 when it was not
	horizon        stream.Micros
	hash           rowHash
	damaged        bool
}

func (d *head) readBuffer(
	ctx context.Context, reset func(), dec *decoder, row func(v [][]byte, r *stored),
) error {
	reset2 := func() {
		*dec = decoder{shard: d.shard}
		reset()
	}
	err := d.query(ctx, d.shard.statement("verify_buffer"), reset2, func(v [][]byte) {
		r := stored{
			added: readInt8(v[11]), retired: readInt8(v[13]), horizon: readTime(v[1]),
			hash: dec.hashRow(v),
		}
		r.damaged = string(r.hash[:]) != string(v[12])
		row(v, &r)
	})
	if err != nil {
		return fmt.Errorf("read the buffer: %w", err)
	}
	return nil
}

// span gives the places on the chain at which a row is live: from the first up to before the end.
func (p *bufferPast) span(r *stored) (first, end int) {
	first = sort.Search(len(p.chain), func(i int) bool { return p.chain[i].epoch >= r.added })
	end = sort.Search(len(p.chain), func(i int) bool {
		return r.retired != 0 && p.chain[i].epoch >= r.retired || p.chain[i].after > r.horizon
	})
	return first, max(first, end)
}

func (p *bufferPast) add(r *stored) {
	p.rows++
	first, end := p.span(r)
	if first == end {
		return
	}
	p.sums[first].add(r.hash)
	p.sums[end].remove(r.hash)
	p.counts[first]++
	p.counts[end]--
	if r.damaged {
		p.bad[first]++
		p.bad[end]--
	}
}

// lacks gives what the rows at a place of the chain lack to be those of its manifest.
func (p *bufferPast) lacks(i int) (digest setDigest, rows int64) {
	digest = p.chain[i].live
	digest.subtract(p.sums[i])
	return digest, p.chain[i].counts[countBuffered] - p.counts[i]
}

// verifies tells whether the buffer as of a place of the chain can be had from the stored rows.
func (p *bufferPast) verifies(i int) bool {
	digest, rows := p.lacks(i)
	return p.bad[i] == 0 && digest == setDigest{} && rows == 0
}

// explain names the rows that make the buffer differ from the manifests, where one row alone does,
// and else the epochs from which on it differs.
func (d *head) explain(ctx context.Context, past *bufferPast, found *findings) error {
	at := map[setDigest]int{}
	for i := range past.chain {
		if digest, _ := past.lacks(i); digest != (setDigest{}) {
			if _, known := at[digest]; !known {
				at[digest] = i
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	explained := map[setDigest]bool{}
	var dec decoder
	err := d.readBuffer(ctx, func() {}, &dec, func(v [][]byte, r *stored) {
		var plus, minus setDigest
		plus.add(r.hash)
		minus.remove(r.hash)
		for _, way := range []struct {
			digest setDigest
			what   string
		}{
			{plus, "it was live after epoch %d, and is not by its retired_epoch"},
			{minus, "it was not live after epoch %d, and is by its retired_epoch, or nobody added it"},
		} {
			if i, is := at[way.digest]; is && !r.damaged {
				explained[way.digest] = true
				found.note(always, "buffer", bufferName(v[2], v[3], r.added), way.what,
					past.chain[i].epoch)
			}
		}
	})
	if err != nil {
		return err
	}
	past.nameEpochs(explained, found)
	return nil
}

// nameEpochs names where the rows begin to differ by what no single row explains.
func (p *bufferPast) nameEpochs(explained map[setDigest]bool, found *findings) {
	var before setDigest
	for i, m := range p.chain {
		digest, rows := p.lacks(i)
		begins := digest != before && digest != (setDigest{})
		before = digest
		name := fmt.Sprintf("epoch %d", m.epoch)
		switch {
		case !begins || explained[digest] || p.bad[i] > 0:
		case rows > 0:
			found.note(always, "buffer", name, "%d rows that were live after it are missing", rows)
		case rows < 0:
			found.note(always, "buffer", name, "%d rows that were not live after it are there", -rows)
		default:
			found.note(always, "buffer", name, "the rows that were live after it are not those that the "+
				"manifest's buffer_digest is of")
		}
	}
}
