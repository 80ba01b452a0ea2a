package join_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestIdentityByText compares identities with the hash of their text, written out by hand.
func TestIdentityByText(t *testing.T) {
	t.Parallel()
	none := stream.Member{}
	for _, c := range []struct {
		what        string
		left, right stream.Member
		version     string
		text        string
	}{
		{
			"a pair", member("pay-47", 2), member("risk-83", 4), "interval-v3",
			"6:pay-47|1:2|7:risk-83|1:4|11:interval-v3",
		},
		{"left alone", member("pay-47", 2), none, "interval-v3", "6:pay-47|1:2|0:|0:|11:interval-v3"},
		{"right alone", none, member("risk-83", 4), "v1", "0:|0:|7:risk-83|1:4|2:v1"},
		{
			"separators inside an id", member("a|1:b", 1), member("c", 1), "v2",
			"5:a|1:b|1:1|1:c|1:1|2:v2",
		},
		{
			"the same bytes cut elsewhere", member("a", 1), member("b|1:c", 1), "v2",
			"1:a|1:1|5:b|1:c|1:1|2:v2",
		},
		{
			"two-byte letters", member("überweisung-é", 1), member("señal-ñ", 1), "intervall-ü",
			"13:überweisung-é|1:1|7:señal-ñ|1:1|11:intervall-ü",
		},
		{
			"four-byte code points", member("pay-😀", 1), member("risk-𝔘", 1), "v1",
			"5:pay-😀|1:1|6:risk-𝔘|1:1|2:v1",
		},
		{
			"a combining accent counts by itself", member("e\u0301", 1), member("\u00e9", 1), "v1",
			"2:e\u0301|1:1|1:\u00e9|1:1|2:v1",
		},
		{"white space counts", member(" p\t", 1), member("\n", 1), "v 1", "3: p\t|1:1|1:\n|1:1|3:v 1"},
		{
			"the ends of the revisions", member("p", 9223372036854775807),
			member("s", -9223372036854775808), "v1",
			"1:p|19:9223372036854775807|1:s|20:-9223372036854775808|2:v1",
		},
		{"revision zero", member("p", 0), none, "v1", "1:p|1:0|0:|0:|2:v1"},
	} {
		if got := join.Identity(c.left, c.right, c.version); got != sha256.Sum256([]byte(c.text)) {
			t.Errorf("%s: identity %x is not the hash of %q", c.what, got, c.text)
		}
	}
	// One written down, so that text and hash can't be wrong together.
	const known = "092d50ef396d9f6c2a8874cdc461b63df651786f346c44f1c82ad83e2fcd2514"
	got := join.Identity(member("pay-47", 2), member("risk-83", 4), "interval-v3")
	if hex.EncodeToString(got[:]) != known {
		t.Errorf("identity %x, want %s", got, known)
	}
}

// TestIdentityHidesTime shows that nothing but ids, revisions and the version enters an identity.
func TestIdentityHidesTime(t *testing.T) {
	t.Parallel()
	left, right := member("o1", 1), member("i1", 1)
	want := join.Identity(left, right, "v1")
	left.Time, right.Time = 1, stream.Infinity
	if join.Identity(left, right, "v1") != want {
		t.Error("the times of the members change the identity")
	}
}

// TestIdentityVectors reproduces the vectors of an independent reference, where they are at hand:
// in identity_vectors.json of the directory TALLY_DATA.
func TestIdentityVectors(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TALLY_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	text, err := os.ReadFile(filepath.Join(dir, "identity_vectors.json"))
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("TALLY_DATA") == "" {
		t.Logf("no reference vectors here (TALLY_DATA names their directory): %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("the file holds no vectors")
	}
	for _, v := range vectors {
		left, right := v.members(t)
		if got := join.Identity(left, right, v.RuleVersion); hex.EncodeToString(got[:]) != v.SHA256 {
			t.Errorf("%s: identity %x, want %s", v.Name, got, v.SHA256)
		}
	}
}

// vector is one reference identity; the absent side has an empty id and an empty revision.
type vector struct {
	Name          string          `json:"name"`
	LeftID        string          `json:"left_id"`
	LeftRevision  json.RawMessage `json:"left_revision"`
	RightID       string          `json:"right_id"`
	RightRevision json.RawMessage `json:"right_revision"`
	RuleVersion   string          `json:"rule_version"`
	SHA256        string          `json:"sha256"`
}

func (v vector) members(t *testing.T) (left, right stream.Member) {
	t.Helper()
	parse := func(id string, revision json.RawMessage) stream.Member {
		if id == "" {
			return stream.Member{}
		}
		var n int64
		if err := json.Unmarshal(revision, &n); err != nil {
			t.Fatalf("%s: revision %s: %v", v.Name, revision, err)
		}
		return member(id, n)
	}
	return parse(v.LeftID, v.LeftRevision), parse(v.RightID, v.RightRevision)
}

func member(id string, revision int64) stream.Member {
	return stream.Member{ID: id, Revision: revision}
}
