package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/queries"
)

// standing is how one event stands in one shard; see queries/command/explain_why.sql.
type standing struct {
	Side, ID   string
	Shard      int32
	Revision   int64
	Deleted    *bool // nil when no revision of it is kept
	Live       *bool
	Key        string
	EventTime  pgtype.Timestamptz
	WindowFrom pgtype.Timestamptz
	WindowTo   pgtype.Timestamptz
	Deadline   pgtype.Timestamptz
	Watermark  pgtype.Timestamptz
	HeldBy     *string
	HeldSince  pgtype.Timestamptz
	// KeepsUnmatched tells whether the join kind makes results of this side's unmatched events.
	KeepsUnmatched bool
	Policy         string
	Partners       int64
	OnlyStatus     *string
	// Settled is the horizon of its results: they can't change once the watermark is past it.
	Settled pgtype.Timestamptz
}

// why tells in sentences how the events stand.
func (r *reading) why(ctx context.Context, s subject) ([]string, error) {
	sql := queries.Render(queries.Command("explain_why"), r.schema)
	rows, err := r.tx.Query(ctx, sql, r.config.Name, s.left, s.right)
	if err != nil {
		return nil, fmt.Errorf("ask how the event stands: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[standing])
	if err != nil {
		return nil, fmt.Errorf("ask how the event stands: %w", err)
	}
	var lines []string
	for i := range found {
		lines = append(lines, found[i].sentences()...)
	}
	return lines, nil
}

func (s *standing) sentences() []string {
	event := fmt.Sprintf("%s event %s revision %d", s.Side, s.ID, s.Revision)
	event = string(event[0]-'a'+'A') + event[1:]
	switch {
	case s.Deleted != nil && *s.Deleted:
		return []string{event + " is a deletion: the event's results are withdrawn."}
	case s.Partners > 0:
		return []string{fmt.Sprintf("%s is matched with %s; %s.", event,
			count(s.Partners, "partner"), s.change())}
	case s.OnlyStatus != nil && *s.OnlyStatus == "final":
		return []string{fmt.Sprintf("%s is final without a partner: the watermark (%s) has passed its "+
			"horizon %s, and %s came in time.", event, moment(s.Watermark), moment(s.Deadline), s.wanted("no"))}
	case s.Live != nil && !*s.Live:
		return []string{fmt.Sprintf("%s left the buffer without a partner: the watermark (%s) has "+
			"passed its horizon %s; the join keeps no row of it.", event, moment(s.Watermark),
			moment(s.Deadline))}
	}
	return []string{
		fmt.Sprintf("%s has no partner: %s has been accepted.", event, s.wanted("no")),
		s.waits(),
	}
}

// wanted names the partner that would match.
func (s *standing) wanted(article string) string {
	other := "right"
	if s.Side == other {
		other = "left"
	}
	return fmt.Sprintf("%s %s event with key %s at %s to %s", article, other, s.Key,
		moment(s.WindowFrom), moment(s.WindowTo))
}

// waits says what an unmatched event of the buffer waits for, and who holds that up.
func (s *standing) waits() string {
	holder := "no source holds it"
	if s.HeldBy != nil {
		holder = "held by " + *s.HeldBy
	}
	if s.HeldSince.Valid {
		holder += ", there since " + moment(s.HeldSince)
	}
	end := "it is dropped"
	switch {
	case s.KeepsUnmatched && s.OnlyStatus != nil:
		end = "its provisional row becomes final"
	case s.KeepsUnmatched:
		end = "it is final; policy " + s.Policy + " has not shown it yet"
	}
	return fmt.Sprintf("It waits until the watermark of shard %d (%s, %s) passes %s%s: then %s.",
		s.Shard, moment(s.Watermark), holder, moment(s.Deadline), s.remaining(), end)
}

// change says until when a matched event can still change.
func (s *standing) change() string {
	if before(s.Settled, s.Watermark) {
		return fmt.Sprintf("that is final, the watermark (%s) has passed %s", moment(s.Watermark),
			moment(s.Settled))
	}
	return fmt.Sprintf("that can change until the watermark (%s) passes %s", moment(s.Watermark),
		moment(s.Settled))
}

// before orders times with the infinities at their ends.
func before(a, b pgtype.Timestamptz) bool {
	if a.InfinityModifier != b.InfinityModifier {
		return a.InfinityModifier < b.InfinityModifier
	}
	return a.InfinityModifier == pgtype.Finite && a.Time.Before(b.Time)
}

func (s *standing) remaining() string {
	finite := pgtype.Finite
	if s.Deadline.InfinityModifier != finite || s.Watermark.InfinityModifier != finite {
		return ""
	}
	return fmt.Sprintf(" (%s of event time to go)",
		duration(s.Deadline.Time.Sub(s.Watermark.Time)))
}

func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// moment writes a time as humane does.
func moment(t pgtype.Timestamptz) string {
	switch {
	case !t.Valid:
		return "no time"
	case t.InfinityModifier != pgtype.Finite:
		return t.InfinityModifier.String()
	}
	return fmt.Sprint(humaneCell(t.Time.Round(time.Microsecond)))
}
