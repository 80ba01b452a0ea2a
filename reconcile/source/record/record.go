// Package record turns one raw record into a stream.Record: a JSON object, a CSV row or a database
// row becomes an event with canonical attributes, or a reason for the quarantine. It does no I/O,
// keeps no state between records and never returns an error: every input has an answer.
//
// The attributes of an event are what is left of its top-level fields once the mapped ones are
// taken out, as canonical JSON: names sorted by their bytes, no white space, strings escaped as
// little as JSON allows, numbers and literals with the text they came with. 1.10 stays 1.10, so
// two contents are equal exactly when their attributes are equal as text.
package record

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// MaxEventBytesDefault is the limit that a Mapping without one gets: 1 MiB.
const MaxEventBytesDefault = 1 << 20

// depthMax is how deep objects and arrays may nest, the record itself included.
const depthMax = 100

// Mapping says which fields of a record mean what. A path is dotted (data.object.id); a top-level
// field whose own name is the whole path wins over the walk.
type Mapping struct {
	// ID is the path of the event's identity. Required.
	ID string
	// Revision is the path of the revision; empty means that every event has revision 1.
	Revision string
	// Key lists the paths of the join key's parts. Required.
	Key []string
	// Time is the path of the event time. Required.
	Time string
	// TimeFormat is rfc3339 (the default), unix_s, unix_ms or unix_us.
	TimeFormat string
	// Deleted is the path of the tombstone flag; empty means that no event is one.
	Deleted string
	// Numeric lists the paths compared as numbers, where NaN or an infinity is refused.
	Numeric []string
	// Keep lists mapped fields that stay in the attributes because they are compared.
	Keep []string
	// Omit lists further top-level fields that are no content, such as a table's cursor column.
	Omit []string
	// MaxEventBytes limits the raw size of one record; 0 means MaxEventBytesDefault.
	MaxEventBytes int
}

// Mapper applies one Mapping. It reuses its scratch memory, so it serves one goroutine at a time;
// the records it returns share nothing with it.
type Mapper struct {
	mapping Mapping
	format  timeFormat
	// paths holds every path once; the fields below are indexes into it, -1 where there is none.
	paths                       []path
	id, revision, time, deleted int
	key, numeric                []int

	reader  bytes.Buffer
	decoder *jsontext.Decoder
	// raw is the record at hand; what follows is scratch memory for it.
	raw      []byte
	members  []member
	order    []int
	slots    []value
	arena    []byte
	segments []segment
	scratch  []byte
	out      []byte
}

// path is one compiled path and what becomes of a top-level field of its name.
type path struct {
	text string
	// steps are the names to walk; one only where the path has no dot.
	steps []string
	// dropped is true where a top-level field of this name is no attribute.
	dropped bool
	// lastAt is which top-level field it was, or began with, in the record before.
	lastAt int
}

// member is one top-level field of the record at hand: the canonical JSON of its name and value.
type member struct {
	quoted []byte
	// decoded is the name where it needs escapes in JSON, else nil.
	decoded []byte
	text    []byte
	dropped bool
}

func (f *member) name() []byte {
	if f.decoded != nil {
		return f.decoded
	}
	return f.quoted[1 : len(f.quoted)-1]
}

// New compiles a mapping. Errors name the field that is wrong.
func New(mapping Mapping) (*Mapper, error) {
	if err := mapping.validate(); err != nil {
		return nil, fmt.Errorf("mapping: %w", err)
	}
	if mapping.MaxEventBytes == 0 {
		mapping.MaxEventBytes = MaxEventBytesDefault
	}
	m := &Mapper{mapping: mapping, format: timeFormats[mapping.TimeFormat]}
	m.id = m.compile(mapping.ID, true)
	m.revision = m.compile(mapping.Revision, true)
	m.time = m.compile(mapping.Time, true)
	m.deleted = m.compile(mapping.Deleted, true)
	for _, text := range mapping.Key {
		m.key = append(m.key, m.compile(text, true))
	}
	for _, text := range mapping.Omit {
		m.compile(text, true)
	}
	for _, text := range mapping.Numeric {
		m.numeric = append(m.numeric, m.compile(text, false))
	}
	m.slots = make([]value, len(m.paths))
	m.decoder = jsontext.NewDecoder(&m.reader)
	return m, nil
}

// MaxEventBytes gives the limit on one record's raw size.
func (m *Mapper) MaxEventBytes() int { return m.mapping.MaxEventBytes }

// TooLarge gives the record of an input over the limit, of which head is the beginning.
func (m *Mapper) TooLarge(head []byte) stream.Record {
	head = head[:min(len(head), m.mapping.MaxEventBytes)]
	return stream.Record{Reason: stream.TooLarge, Raw: slices.Clip(head)}
}

// Required lists the paths without which no event of this mapping can be read.
func (m *Mapper) Required() []string {
	required := []string{m.mapping.ID}
	if m.mapping.Revision != "" {
		required = append(required, m.mapping.Revision)
	}
	return append(append(required, m.mapping.Key...), m.mapping.Time)
}

// Paths lists every path the mapping reads.
func (m *Mapper) Paths() []string {
	paths := m.Required()
	if m.mapping.Deleted != "" {
		paths = append(paths, m.mapping.Deleted)
	}
	return append(paths, m.mapping.Numeric...)
}

func (m *Mapping) validate() error {
	if _, known := timeFormats[m.TimeFormat]; !known {
		return fmt.Errorf("time_format %q: want rfc3339, unix_s, unix_ms or unix_us", m.TimeFormat)
	}
	if m.MaxEventBytes < 0 {
		return fmt.Errorf("max_event_bytes %d: want a positive number", m.MaxEventBytes)
	}
	if len(m.Key) == 0 {
		return errors.New("key: name at least one field")
	}
	if err := validatePath("id", m.ID); err != nil {
		return err
	}
	if err := validatePath("time", m.Time); err != nil {
		return err
	}
	for _, text := range m.Key {
		if err := validatePath("key", text); err != nil {
			return err
		}
	}
	for _, optional := range [][2]string{{"revision", m.Revision}, {"deleted", m.Deleted}} {
		if optional[1] == "" {
			continue
		}
		if err := validatePath(optional[0], optional[1]); err != nil {
			return err
		}
	}
	for _, text := range m.Numeric {
		if err := validatePath("compare", text); err != nil {
			return err
		}
	}
	return nil
}

func validatePath(field, text string) error {
	switch {
	case text == "":
		return fmt.Errorf("%s: name a field", field)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%s %q: not valid text", field, text)
	}
	return nil
}

// compile gives the index of a path, adding it when it is new.
func (m *Mapper) compile(text string, mapped bool) int {
	if text == "" {
		return -1
	}
	dropped := mapped && !slices.Contains(m.mapping.Keep, text)
	for i := range m.paths {
		if m.paths[i].text == text {
			m.paths[i].dropped = m.paths[i].dropped || dropped
			return i
		}
	}
	m.paths = append(m.paths, path{text: text, steps: strings.Split(text, "."), dropped: dropped})
	return len(m.paths) - 1
}
