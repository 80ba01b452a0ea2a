package private

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestContainer starts the server that the demo falls back to. It runs where the tests are made to
// run in containers, since nothing else says that an image can be had.
func TestContainer(t *testing.T) {
	t.Parallel()
	if os.Getenv("TALLY_TEST_POSTGRES") != "container" {
		t.Log("NOT RUN: TALLY_TEST_POSTGRES is not container")
		return
	}
	server, err := startContainer(t.Context(), "secret-of-the-test")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := pgx.Connect(t.Context(), server.URL); err == nil {
		t.Error("the server still answers")
	}
}
