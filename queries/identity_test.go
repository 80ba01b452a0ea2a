package queries_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tallystick/tallystick/queries"
)

// vector is an identity from an independent reference; revisions are numbers, or empty text for
// the absent side.
type vector struct {
	Name        string `json:"name"`
	LeftID      string `json:"left_id"`
	Left        any    `json:"left_revision"`
	RightID     string `json:"right_id"`
	Right       any    `json:"right_revision"`
	RuleVersion string `json:"rule_version"`
	SHA256      string `json:"sha256"`
}

// vectors gives those written down in testdata, and all of the reference where its file is at
// hand: TALLY_DATA names the directory.
func vectors(t *testing.T) []vector {
	t.Helper()
	directory := os.Getenv("TALLY_DATA")
	if directory == "" {
		directory = filepath.Join("..", "..", "shared", "data")
	}
	var list []vector
	for _, file := range []string{
		"testdata/identity_vectors.json", filepath.Join(directory, "identity_vectors.json"),
	} {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && len(list) > 0 && os.Getenv("TALLY_DATA") == "" {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var found []vector
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&found); err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	return list
}

func TestMatchIdentity(t *testing.T) {
	t.Parallel()
	tx := fixture(t, hostileSchema)
	list := vectors(t)
	t.Logf("%d vectors", len(list))
	sql := queries.Render(`select :"schema".match_identity($1, $2, $3, $4, $5)`, hostileSchema)
	for _, v := range list {
		var found string
		row := tx.QueryRow(t.Context(), sql,
			v.LeftID, fmt.Sprint(v.Left), v.RightID, fmt.Sprint(v.Right), v.RuleVersion)
		if err := row.Scan(&found); err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		if found != v.SHA256 {
			t.Errorf("%s: found %s, want %s", v.Name, found, v.SHA256)
		}
	}
}
