package join

import (
	"crypto/sha256"
	"strconv"
	"unicode/utf8"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Identity gives the 32-byte identity of a result: the SHA-256 of
//
//	LEN:left_id|LEN:left_revision|LEN:right_id|LEN:right_revision|LEN:rule_version
//
// where each LEN counts the Unicode code points of what follows. The absent side of an unmatched
// row is a Member with an empty ID and counts as two empty texts. The SQL function match_identity
// computes the same.
func Identity(left, right stream.Member, ruleVersion string) stream.MatchID {
	var space [256]byte
	text := appendMember(space[:0], left)
	text = append(text, '|')
	text = appendMember(text, right)
	text = append(text, '|')
	text = appendCounted(text, ruleVersion)
	return sha256.Sum256(text)
}

func appendMember(text []byte, m stream.Member) []byte {
	if m.ID == "" {
		return append(text, "0:|0:"...)
	}
	text = appendCounted(text, m.ID)
	text = append(text, '|')
	var digits [20]byte
	revision := strconv.AppendInt(digits[:0], m.Revision, 10)
	text = strconv.AppendInt(text, int64(len(revision)), 10)
	text = append(text, ':')
	return append(text, revision...)
}

func appendCounted(text []byte, piece string) []byte {
	text = strconv.AppendInt(text, int64(utf8.RuneCountInString(piece)), 10)
	text = append(text, ':')
	return append(text, piece...)
}
