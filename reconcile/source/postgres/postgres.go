// Package postgres reads the rows of one table in order after a position, by polling.
//
// The sound way orders rows by the transaction that wrote them. The table has a column
//
//	txid xid8 not null default pg_current_xact_id()
//
// and a page holds only rows below the oldest transaction that still runs in the table's database, so
// that whatever commits later sorts behind what was read. A writing transaction left open there holds
// reading back until it ends; on a standby, which can't tell them apart, one of any database does.
// Any cursor without it loses rows: a sequence value is taken before its transaction commits, and the
// reader may pass it in between. That is allowed only by the name consistency: weak. Either way a row
// that is updated in place is read again only when the update also renews the columns of the order.
//
// Every page is one statement in a transaction of its own: nothing is held between pages, and
// nothing is kept in the session, so a transaction pooler in between does no harm.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/reconcile/source/record"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// Defaults of Config.
const (
	PageDefault = 5000
	PollDefault = 50 * time.Millisecond
	// BoundWaitDefault is for BoundWait.
	BoundWaitDefault = time.Minute
)

// horizonAge is how often the transactions of other databases are told from those of the table's,
// which takes two statements more than a page.
const horizonAge = time.Second

// Weak is the consistency that must be asked for by name where there is no transaction column.
const Weak = "weak"

// Config says what to read and how. Names of tables and columns are taken as they are written,
// upper and lower case included.
type Config struct {
	Side stream.Side
	// Name names the source; the default is Table.
	Name string
	// Pool connects to the table's database. Without one, URL does.
	Pool *pgxpool.Pool
	URL  string
	// Table is schema.table, the schema being public where there is none. A part that contains a
	// dot is put into double quotes.
	Table string
	// Cursor is the column that orders rows, within a transaction where Transaction is given.
	Cursor string
	// Transaction is the xid8 column of the sound way.
	Transaction string
	// Consistency is empty or transaction, or Weak where Transaction is empty.
	Consistency string
	Mapping     record.Mapping
	// Page is how many rows one statement reads at most; 0 means PageDefault.
	Page int
	// Poll is what PollInterval gives; 0 means PollDefault.
	Poll time.Duration
	// BoundWait is how long Bound waits for transactions that hold back rows already committed; 0
	// means BoundWaitDefault.
	BoundWait time.Duration
}

// Source reads one table. It serves one goroutine at a time. After an error from Read it must be
// opened again.
type Source struct {
	config Config
	mapper *record.Mapper
	// quoted is the table's name as SQL.
	quoted string
	pool   *pgxpool.Pool

	table    *table
	position position
	// horizon, found at horizonAt, is a transaction id below which nothing more commits. The server's
	// oldest running transaction is another.
	horizon   string
	horizonAt time.Time
	bounded   bool
	// bound is the fixed end: a transaction id that is excluded, or the last row's position, which
	// is included and empty for an empty table.
	bound position
	// last, unless it's empty, is the position after which nothing is read.
	last position
	// selection is nil where all rows are read.
	selection *selection
}

// New checks the configuration. It doesn't connect.
func New(config Config) (*Source, error) {
	quoted, err := quoteTable(config.Table)
	if err != nil {
		return nil, fmt.Errorf("postgres source: table %q: %w", config.Table, err)
	}
	if config.Name == "" {
		config.Name = config.Table
	}
	if config.Page == 0 {
		config.Page = PageDefault
	}
	if config.Poll == 0 {
		config.Poll = PollDefault
	}
	if config.BoundWait == 0 {
		config.BoundWait = BoundWaitDefault
	}
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("postgres source %s: %w", config.Name, err)
	}
	// Where a row stands in the table says nothing about the fact: the same fact inserted twice
	// is a duplicate.
	config.Mapping.Omit = append([]string{config.Cursor}, config.Mapping.Omit...)
	if config.Transaction != "" {
		config.Mapping.Omit = append(config.Mapping.Omit, config.Transaction)
	}
	mapper, err := record.New(config.Mapping)
	if err != nil {
		return nil, fmt.Errorf("postgres source %s: %w", config.Name, err)
	}
	return &Source{config: config, mapper: mapper, quoted: quoted, pool: config.Pool}, nil
}

// Partition gives the table's only partition, number 0.
func (s *Source) Partition() stream.Partition {
	return stream.Partition{Side: s.config.Side, Source: s.config.Name}
}

// PollInterval tells how long to wait after the present end before the next Read.
func (s *Source) PollInterval() time.Duration { return s.config.Poll }

// Open starts after position, empty being the beginning, and gives the table's identity. identity
// is what it was when last seen, empty where unknown. Another table under the same name, or one
// that is behind the position, is stream.ErrPositionLost; a table that can't be read as configured
// is stream.ErrUnusable.
func (s *Source) Open(
	ctx context.Context, position, identity string,
) (newIdentity string, err error) {
	if err := s.connect(ctx); err != nil {
		return "", err
	}
	found, err := s.inspect(ctx)
	if err != nil {
		return "", err
	}
	if err := s.mustRead(ctx, found); err != nil {
		return "", err
	}
	s.table, s.last, s.selection = found, nil, nil
	s.horizon, s.horizonAt = "0", time.Time{}
	if identity != "" && identity != found.identity() {
		return "", s.lost("it was %s and is %s", identity, found.identity())
	}
	if s.position, err = s.decode(position); err != nil {
		return "", err
	}
	if err := s.checkPosition(ctx); err != nil {
		return "", err
	}
	return found.identity(), nil
}

// Read gives up to maxRecords rows that are there now, without waiting for more; atEnd is true
// when the present or fixed end was reached.
func (s *Source) Read(
	ctx context.Context, maxRecords int,
) (records []stream.Record, atEnd bool, err error) {
	if s.table == nil {
		return nil, false, fmt.Errorf("read %s: the source isn't open", s.config.Table)
	}
	if s.selection != nil {
		return s.readSelected(ctx, maxRecords)
	}
	if err := s.findHorizon(ctx); err != nil {
		return nil, false, err
	}
	for len(records) < maxRecords {
		limit := min(s.config.Page, maxRecords-len(records))
		before := len(records)
		if records, err = s.readPage(ctx, records, limit); err != nil {
			return nil, false, err
		}
		if len(records)-before < limit {
			return records, true, nil
		}
	}
	return records, false, nil
}

// Bound fixes the end at what is there now. With a transaction column it first waits, for no longer
// than BoundWait, until every row committed by now can be read; the rows of transactions that are
// still open then, and those of all younger ones, are excluded. The source must be open.
func (s *Source) Bound(ctx context.Context) error {
	if s.table == nil {
		return fmt.Errorf("find the end of %s: the source isn't open", s.config.Table)
	}
	if s.bounded {
		return nil
	}
	bound, err := s.presentEnd(ctx)
	if err != nil {
		return err
	}
	s.bounded, s.bound = true, bound
	return nil
}

// EndAt fixes the end at the position of a row that was read before, until the source is opened
// again. The source must be open.
func (s *Source) EndAt(position string) (err error) {
	if s.table == nil {
		return fmt.Errorf("read %s up to a position: the source isn't open", s.config.Table)
	}
	s.last, err = s.decode(position)
	return err
}

// Seal does nothing: a table has no half rows.
func (s *Source) Seal() {}

// Identity tells which table is read in which order; empty before Open.
func (s *Source) Identity() string {
	if s.table == nil {
		return ""
	}
	return s.table.identity()
}

// Close gives up the connections that the source made itself. The source can be opened again.
func (s *Source) Close() error {
	if s.config.Pool == nil && s.pool != nil {
		s.pool.Close()
		s.pool = nil
	}
	s.table = nil
	return nil
}

func (c *Config) validate() error {
	switch {
	case c.Pool == nil && c.URL == "":
		return errors.New("no database to connect to")
	case c.Cursor == "":
		return errors.New("cursor: name the column that orders the rows")
	case c.Consistency != "" && c.Consistency != "transaction" && c.Consistency != Weak:
		return fmt.Errorf("consistency %q: want transaction or weak", c.Consistency)
	case c.Transaction != "" && c.Consistency == Weak:
		return errors.New("consistency: weak is for tables without a transaction column")
	case c.Transaction == "" && c.Consistency != Weak:
		return fmt.Errorf("transaction: name a column (xid8 not null default "+
			"pg_current_xact_id()); by %s alone, rows that commit out of order are lost "+
			"(consistency: weak accepts that)", c.Cursor)
	case c.Transaction == c.Cursor:
		return errors.New("cursor and transaction: name two columns")
	case c.Page < 0:
		return fmt.Errorf("page %d: want a positive number", c.Page)
	case c.Poll < 0:
		return fmt.Errorf("poll %s: want a positive duration", c.Poll)
	case c.BoundWait < 0:
		return fmt.Errorf("bound wait %s: want a positive duration", c.BoundWait)
	}
	return nil
}

func (s *Source) lost(format string, args ...any) error {
	return fmt.Errorf("%w: table %s: %s; bring the table back, or reconcile the new one under "+
		"another name",
		stream.ErrPositionLost, s.config.Table, fmt.Sprintf(format, args...))
}

func (s *Source) unusable(format string, args ...any) error {
	return fmt.Errorf("%w: table %s: %s", stream.ErrUnusable, s.config.Table,
		fmt.Sprintf(format, args...))
}
