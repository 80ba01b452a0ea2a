package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// The manifests of a shard form a chain: each one's digest covers all it says and the digest of
// its parent. The server adds the times of the transaction and makes the digest, over the columns
// in the order of the table and in the form described at rowHash; nothing of it is compared by its
// text.

// digestSize is the size of the digests of outputs and manifests, in bytes.
const digestSize = sha256.Size

// The kinds of manifest.
const (
	kindEpoch   = "epoch"
	kindRestore = "restore"
	kindRebuild = "rebuild"
)

// manifest is what a manifest says that a delta doesn't.
type manifest struct {
	kind   string
	parent int64
	// parentDigest is the digest of the parent's manifest, zeros for the first.
	parentDigest [digestSize]byte
	live         setDigest
	output       [digestSize]byte
	// sources is the JSON array of the partitions.
	sources string
	// replays is the discarded epoch that is read again, 0 for none; divergence says, as JSON, how
	// the outputs differ, empty when they don't.
	replays    int64
	divergence string
}

// sourceState is one partition in a manifest.
type sourceState struct {
	Side        string `json:"side"`
	Source      string `json:"source"`
	Partition   int32  `json:"partition"`
	From        string `json:"from"`
	To          string `json:"to"`
	Watermark   string `json:"watermark"`
	Idle        bool   `json:"idle"`
	LastEventAt string `json:"last_event_at"`
	Identity    string `json:"identity"`
}

// columns gathers the columns of a row as parameters of a statement and as the text of its digest.
type columns struct {
	args *args
	all  []byte
}

// put adds a column that is encoded with its length.
func (c *columns) put(oid uint32, v []byte) {
	c.all = append(c.all, v...)
	if isNull := v[0] == 0xff; isNull {
		c.args.add(oid, nil)
		return
	}
	c.args.add(oid, v[4:])
}

func (c *columns) int8(v int64) { c.put(pgtype.Int8OID, appendInt8(nil, v)) }

func (c *columns) time(v stream.Micros) { c.put(pgtype.TimestamptzOID, appendTime(nil, v)) }

func (c *columns) bytes(v []byte) { c.put(pgtype.ByteaOID, appendBytes(nil, v)) }

// manifest encodes a manifest. Its statement returns the digest.
func (h *Shard) manifest(d *stream.Delta, m *manifest) statement {
	s := statement{name: "epoch_manifest", sql: h.store.sql("epoch_manifest")}
	c, n := columns{args: &s.args}, &d.Counts
	c.put(pgtype.Int4OID, appendInt4(nil, h.generation))
	c.put(pgtype.Int4OID, appendInt4(nil, h.shard))
	c.int8(d.Epoch)
	c.put(pgtype.TextOID, appendText(nil, m.kind))
	c.int8(m.parent)
	c.put(pgtype.UUIDOID, appendBytes(nil, h.attempt[:]))
	c.time(d.Clock)
	c.time(d.WatermarkBefore)
	c.time(d.WatermarkAfter)
	c.put(pgtype.JSONOID, appendText(nil, m.sources))
	for _, count := range []int64{
		n.Read, n.Accepted, n.Duplicate, n.Stale, n.Late, n.Quarantined, n.OutOfShard, n.Ahead,
		n.Paired, n.ProvisionalOpened, n.Retracted, n.Superseded, n.Final, n.Expired, n.Buffered,
	} {
		c.int8(count)
	}
	c.bytes(m.live.bytes())
	c.bytes(m.output[:])
	replays := appendNull(nil)
	if m.replays != 0 {
		replays = appendInt8(nil, m.replays)
	}
	c.put(pgtype.Int8OID, replays)
	c.put(pgtype.JSONOID, appendTextOrNull(nil, m.divergence))
	c.bytes(m.parentDigest[:])
	s.args.add(pgtype.ByteaOID, c.all)
	return s
}

// Replays says that the epoch reads again what a discarded one read. Its outputs must have the
// digest that was recorded; a difference is written into the manifest, and true is returned.
func (e *Epoch) Replays(epoch int64, output [digestSize]byte) (diverged bool) {
	e.manifest.replays = epoch
	if e.manifest.output == output {
		return false
	}
	e.manifest.divergence = fmt.Sprintf(`{"epoch":%d,"recorded":"%s","replayed":"%s"}`,
		epoch, hex.EncodeToString(output[:]), hex.EncodeToString(e.manifest.output[:]))
	return true
}

// describeSources gives the manifest's JSON array of the partitions.
func describeSources(progress []stream.Progress) string {
	list := make([]sourceState, len(progress))
	for i, p := range progress {
		list[i] = sourceState{
			Side: p.Side.String(), Source: p.Source, Partition: p.Number, From: p.From, To: p.To,
			Watermark: p.Watermark.String(), Idle: p.Idle,
			LastEventAt: p.LastEventAt.String(), Identity: p.Identity,
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("store: describe sources %v: %v", list, err))
	}
	return string(text)
}

// readOutput takes the transitions of an epoch as they are stored into its record: their counts and
// their digest. It gives how many there are.
func (h *Shard) readOutput(
	ctx context.Context, conn *pgconn.PgConn, d *stream.Delta, m *manifest,
) (n int64, err error) {
	s := h.statement("epoch_output")
	s.args.int8(d.Epoch)
	output := sha256.New()
	var scratch []byte
	err = readAll(ctx, conn, s, func(v [][]byte) {
		id, to := stream.MatchID(v[0]), stream.Status(v[1])
		scratch = appendOutput(scratch[:0], &id, to, stream.Reason(v[2]), v[3])
		output.Write(scratch)
		d.Counts.Count(to)
		n++
	})
	output.Sum(m.output[:0])
	return n, err
}
