package private

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestStartAndStopLeaveNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Not t.TempDir: only its owner may enter that, and as root the server has another user.
	parent, err := os.MkdirTemp("", "tally-private-") //nolint:usetesting
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "server")
	server, err := Start(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var encoding string
	if err := conn.QueryRow(ctx, "show server_encoding").Scan(&encoding); err != nil {
		t.Fatal(err)
	}
	if encoding != "UTF8" {
		t.Errorf("encoding %s", encoding)
	}
	cancel() // as after an interrupt
	if err := server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if _, err := pgx.Connect(t.Context(), server.URL); err == nil {
		t.Error("the server still answers")
	}
}
