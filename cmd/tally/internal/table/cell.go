package table

import (
	"bytes"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgtype"
)

// cellKind is how a cell is written in JSON.
type cellKind uint8

const (
	missing cellKind = iota
	words
	number
	truth
	document // already JSON
)

// cell is a value made ready to write.
type cell struct {
	kind cellKind
	text string
}

// timeLayout is RFC 3339 with microseconds, as Postgres keeps them.
const timeLayout = "2006-01-02T15:04:05.999999Z07:00"

var numberText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func cellOf(v any) cell {
	switch v := v.(type) {
	case nil:
		return cell{}
	case string:
		return cell{words, v}
	case *string:
		if v == nil {
			return cell{}
		}
		return cell{words, *v}
	case bool:
		return cell{truth, strconv.FormatBool(v)}
	case json.Number:
		return numberCell(v.String())
	case json.RawMessage:
		return documentCell(v)
	case time.Time:
		return cell{words, v.UTC().Format(timeLayout)}
	case []byte:
		return cell{words, hex.EncodeToString(v)}
	case [16]byte:
		return cell{words, pgtype.UUID{Bytes: v, Valid: true}.String()}
	case float32:
		return floatCell(float64(v), 32)
	case float64:
		return floatCell(v, 64)
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return cell{number, fmt.Sprint(v)}
	case pgtype.InfinityModifier, time.Duration:
		return cell{words, fmt.Sprint(v)}
	case []any, []string, map[string]any:
		return documentOf(v)
	}
	return otherCell(v)
}

// otherCell reads pgx's own types through the text they give a driver, and the rest by fmt.
func otherCell(v any) cell {
	switch v := v.(type) {
	case pgtype.Numeric:
		value, err := v.Value()
		if text, ok := value.(string); ok && err == nil {
			return numberCell(text)
		}
		return cell{}
	case driver.Valuer:
		value, err := v.Value()
		if err != nil {
			return cell{words, fmt.Sprint(v)}
		}
		if _, again := value.(driver.Valuer); !again {
			return cellOf(value)
		}
	}
	return cell{words, fmt.Sprint(v)}
}

// numberCell is a number where JSON knows it as one: NaN and infinities are words.
func numberCell(text string) cell {
	if numberText.MatchString(text) {
		return cell{number, text}
	}
	return cell{words, text}
}

func floatCell(f float64, bits int) cell {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return cell{words, fmt.Sprint(f)}
	}
	return cell{number, strconv.FormatFloat(f, 'f', -1, bits)}
}

func documentCell(raw json.RawMessage) cell {
	if len(raw) == 0 {
		return cell{}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return cell{words, string(raw)}
	}
	return cell{document, compact.String()}
}

func documentOf(v any) cell {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return cell{words, fmt.Sprint(v)}
	}
	return cell{document, strings.TrimSuffix(out.String(), "\n")}
}

func (c cell) json() string {
	switch c.kind {
	case missing:
		return "null"
	case number, truth, document:
		return c.text
	}
	return documentOf(c.text).text
}

// csv guards text against being read as a formula by a spreadsheet: a cell that starts with one of
// = + - @ tab or CR is prefixed by an apostrophe, except where it is a number.
func (c cell) csv() string {
	if c.kind == missing || c.kind == number || c.text == "" {
		return c.text
	}
	if strings.ContainsRune("=+-@\t\r", rune(c.text[0])) && !numberText.MatchString(c.text) {
		return "'" + c.text
	}
	return c.text
}

// printable keeps a terminal safe from what is in the data: control characters are shown escaped.
func printable(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' {
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
