package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// quarantineFilter says which records to list; empty means any.
type quarantineFilter struct {
	status, reason, side string
	limit                int
}

func newQuarantineCommand(a *app) *cobra.Command {
	var filter quarantineFilter
	cmd := &cobra.Command{
		Use:   "quarantine",
		Short: "List the records that could not be taken, and feed repaired ones back",
		Long: "quarantine lists the records that were set aside whole because they could not be\n" +
			"taken, oldest first, with the reason. Each is kept as it was read, up to\n" +
			"limits.max_event_bytes. quarantine release feeds one back.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(oneOf("status", filter.status, "open", "released", "resolved"),
				oneOf("side", filter.side, "left", "right"),
				positive("limit", filter.limit)); err != nil {
				return usageError(err)
			}
			return a.read(cmd.Context(), func(ctx context.Context, r *reading) error {
				return a.quarantine(ctx, r, filter)
			})
		},
	}
	cmd.Flags().StringVar(&filter.status, "status", "", "only open, released or resolved ones")
	cmd.Flags().StringVar(&filter.reason, "reason", "", "only this reason, such as bad_time")
	cmd.Flags().StringVar(&filter.side, "side", "", "only left or right")
	cmd.Flags().IntVar(&filter.limit, "limit", limitDefault, "at most this many rows")
	a.outputFlag(cmd)
	cmd.AddCommand(newReleaseCommand(a))
	return cmd
}

func (a *app) quarantine(ctx context.Context, r *reading, f quarantineFilter) error {
	if _, err := r.serving(ctx); err != nil {
		return err
	}
	t, err := r.command(ctx, "quarantine", r.config.Name, f.status, f.reason, f.side, f.limit+1)
	if err != nil {
		return err
	}
	a.cut(t, f.limit)
	t.Empty = "nothing in quarantine"
	if a.forPeople() {
		t = pick(t, "quarantine_id", "status", "reason", "side", "source", "partition", "position",
			"recorded_at", "raw_text")
		shorten(t.Rows, len(t.Columns)-1)
	}
	return a.show(t)
}

// rawShown bounds how much of a record a line for people shows.
const rawShown = 80

func shorten(rows [][]any, column int) {
	for _, row := range rows {
		text, ok := row[column].(string)
		if runes := []rune(text); ok && len(runes) > rawShown {
			row[column] = string(runes[:rawShown]) + "…"
		}
	}
}

func newReleaseCommand(a *app) *cobra.Command {
	var repaired string
	cmd := &cobra.Command{
		Use:   "release ID",
		Short: "Feed a quarantined record back, repaired or as it was",
		Long: "release lets the worker read the record ID (as the list shows it) again in one of its\n" +
			"next epochs: as it was, or as the file given by --repaired holds it.",
		Example: "  tally quarantine release 0-17-3\n" +
			"  jq -c '.occurred_at = \"2026-01-31T12:00:00Z\"' bad.json |\n" +
			"    tally quarantine release 0-17-3 --repaired -",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseQuarantineID(args[0])
			if err != nil {
				return usageError(err)
			}
			return a.release(cmd.Context(), id, repaired, cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&repaired, "repaired", "",
		"file that holds the record to read instead; - is standard input")
	return cmd
}

// quarantineID is a record's identity in the view quarantined: shard-epoch-ordinal.
type quarantineID struct {
	shard   int32
	epoch   int64
	ordinal int32
}

func parseQuarantineID(text string) (quarantineID, error) {
	wrong := fmt.Errorf("%q is no quarantine id: want shard-epoch-ordinal, like 0-17-3", text)
	parts := strings.Split(text, "-")
	if len(parts) != 3 {
		return quarantineID{}, wrong
	}
	shard, err1 := strconv.ParseUint(parts[0], 10, 31)
	epoch, err2 := strconv.ParseUint(parts[1], 10, 63)
	ordinal, err3 := strconv.ParseUint(parts[2], 10, 31)
	if err1 != nil || err2 != nil || err3 != nil {
		return quarantineID{}, wrong
	}
	return quarantineID{int32(shard), int64(epoch), int32(ordinal)}, nil
}

func (a *app) release(
	ctx context.Context, id quarantineID, repairedFile string, stdin io.Reader,
) error {
	s, c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	repaired, err := readRepaired(repairedFile, stdin, int64(c.Limits.MaxEventBytes))
	if err != nil {
		return usageError(err)
	}
	found, err := servingOf(ctx, s.Pool(), s.Schema(), c.Name)
	if err != nil {
		return err
	}
	err = s.Release(ctx, found.Generation, id.shard, id.epoch, id.ordinal, repaired)
	if err != nil {
		return err
	}
	a.printf("released %d-%d-%d; it is read again in one of the next epochs\n",
		id.shard, id.epoch, id.ordinal)
	return nil
}

// readRepaired gives the record in the file without its last newline, or nil when none is named.
func readRepaired(file string, stdin io.Reader, maxBytes int64) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	source := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read the repaired record: %w", err)
		}
		defer f.Close()
		source = f
	}
	text, err := io.ReadAll(io.LimitReader(source, maxBytes+3)) // room for CR LF and one byte too many
	if err != nil {
		return nil, fmt.Errorf("read the repaired record: %w", err)
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("the repaired record in %s is empty", file)
	case int64(len(text)) > maxBytes:
		return nil, fmt.Errorf("the repaired record in %s is over limits.max_event_bytes (%d bytes)",
			file, maxBytes)
	}
	return text, nil
}
