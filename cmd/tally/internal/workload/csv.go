package workload

import (
	"bufio"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// WriteCSV writes a whole side to w with a header, and gives the number of rows.
func WriteCSV(w io.Writer, s *Stream) (rows int64, err error) {
	buffered := bufio.NewWriterSize(w, 1<<20)
	out := csv.NewWriter(buffered)
	if err := out.Write(columns(s.side)); err != nil {
		return 0, err
	}
	for {
		event, more := s.Next()
		if !more {
			break
		}
		if err := out.Write(event.cells()); err != nil {
			return rows, err
		}
		rows++
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return rows, err
	}
	return rows, buffered.Flush()
}

// cells gives the event as a CSV row; what isn't JSON is a row cut short here.
func (e *Event) cells() []string {
	id, account := e.ID(), e.AccountText()
	switch e.Defect {
	case NotJSON:
		return []string{id}
	case NoID:
		id = ""
	case NoKey:
		account = ""
	}
	common := []string{
		id, strconv.FormatInt(e.Revision, 10), account, e.Currency(),
		string(e.appendTime(nil)), e.Amount(), e.Country(),
	}
	deleted := strconv.FormatBool(e.Deleted)
	if e.Side == stream.Left {
		return append(common, e.Merchant(), e.Method(), e.Reference(), deleted)
	}
	return append(common, e.Level(), strconv.FormatInt(e.Score(), 10), e.Reference(), deleted)
}
