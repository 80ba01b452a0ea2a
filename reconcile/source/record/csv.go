package record

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Header is a CSV file's first row, bound to the mapping it is read with.
type Header struct {
	names [][]byte
	// columns gives each path its column, -1 where there is none.
	columns []int
	// attributes lists the columns that are attributes, in the order of their names.
	attributes []int
}

// Header binds column names to the mapping. A column that stands twice, or one the mapping needs
// and the row doesn't have, is an error that names it.
func (m *Mapper) Header(names []string) (*Header, error) {
	h := &Header{columns: make([]int, len(m.paths))}
	for i, name := range names {
		if textFault([]byte(name)) != "" {
			return nil, fmt.Errorf("column %d: its name %q is not valid text", i+1, name)
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("column %q stands twice in the header", name)
		}
		h.names = append(h.names, []byte(name))
	}
	for _, name := range m.Paths() {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("no column %q; the header has %s", name, strings.Join(names, ", "))
		}
	}
	dropped := make([]bool, len(names))
	for i := range m.paths {
		h.columns[i] = slices.Index(names, m.paths[i].text)
		if h.columns[i] >= 0 {
			dropped[h.columns[i]] = m.paths[i].dropped
		}
	}
	for i := range names {
		if !dropped[i] {
			h.attributes = append(h.attributes, i)
		}
	}
	slices.SortFunc(h.attributes, func(a, b int) int { return bytes.Compare(h.names[a], h.names[b]) })
	return h, nil
}

// CSV reads one row, cells being the decoded cells of raw. Attributes are JSON strings of the
// cells; an empty cell is an absent id, key part, time or flag.
func (m *Mapper) CSV(h *Header, cells [][]byte, raw []byte) stream.Record {
	raw = slices.Clip(raw)
	if len(raw) > m.mapping.MaxEventBytes {
		return m.TooLarge(raw)
	}
	reason := textFault(raw)
	switch {
	case reason != "":
	case len(cells) < len(h.names):
		reason = stream.ShortRow
	case len(cells) > len(h.names):
		reason = stream.BadRow
	}
	if reason != "" {
		return stream.Record{Reason: reason, Raw: raw}
	}
	for i, column := range h.columns {
		m.slots[i] = value{}
		if column >= 0 && len(cells[column]) > 0 {
			m.slots[i] = value{kind: cell, text: cells[column]}
		}
	}
	m.out = append(m.out[:0], '{')
	for n, column := range h.attributes {
		if n > 0 {
			m.out = append(m.out, ',')
		}
		m.out = append(appendQuoted(m.out, h.names[column]), ':')
		m.out = appendQuoted(m.out, cells[column])
	}
	m.out = append(m.out, '}')
	return m.finish(raw)
}
