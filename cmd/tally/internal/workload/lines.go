package workload

import (
	"bufio"
	"io"
	"strconv"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// The vocabulary of the attributes.
var (
	currencies = [...]string{"EUR", "USD", "GBP", "CHF"}
	countries  = [...]string{"DE", "FR", "NL", "GB", "US", "CH", "ES", "IT"}
	methods    = [...]string{"card", "wire", "debit", "cash"}
	levels     = [...]string{"low", "medium", "high"}
)

// ID is the event's id: pay-00000001 or sig-00000001.
func (e *Event) ID() string { return string(e.appendID(nil)) }

// AccountText is the account as both sides write it.
func (e *Event) AccountText() string { return string(e.appendAccount(nil)) }

// Currency is decided by the account, so that both sides agree on it.
func (e *Event) Currency() string { return currencies[e.Account%uint64(len(currencies))] }

// Amount is the amount with two decimals.
func (e *Event) Amount() string { return string(e.appendAmount(nil)) }

// Country is decided by the account, too.
func (e *Event) Country() string { return countries[e.Account>>8%uint64(len(countries))] }

// Method says how a payment was made.
func (e *Event) Method() string { return methods[e.chance>>12%uint64(len(methods))] }

// Level is the risk that a signal reports.
func (e *Event) Level() string { return levels[e.chance>>16%uint64(len(levels))] }

// Merchant is where a payment was made.
func (e *Event) Merchant() string { return string(e.appendMerchant(nil)) }

// Reference is the text that came with the event.
func (e *Event) Reference() string { return string(e.appendReference(nil)) }

// Score is the number that a signal reports.
func (e *Event) Score() int64 { return int64(e.chance >> 20 % 1000) }

// WriteNDJSON writes a whole side to w, one event a line, and gives the number of lines.
func WriteNDJSON(w io.Writer, s *Stream) (lines int64, err error) {
	out := bufio.NewWriterSize(w, 1<<20)
	var line []byte
	for {
		event, more := s.Next()
		if !more {
			return lines, out.Flush()
		}
		line = append(event.AppendJSON(line[:0]), '\n')
		if _, err := out.Write(line); err != nil {
			return lines, err
		}
		lines++
	}
}

// AppendJSON appends the event as one JSON object, with its defect.
func (e *Event) AppendJSON(b []byte) []byte {
	if e.Defect == NotJSON {
		return append(b, `{"account": half a li`...)
	}
	b = append(b, '{')
	if e.Defect != NoID {
		b = append(b, e.idField()...)
		b = append(e.appendID(b), `",`...)
	}
	b = append(b, `"revision":`...)
	b = strconv.AppendInt(b, e.Revision, 10)
	if e.Defect != NoKey {
		b = append(b, `,"account":"`...)
		b = append(e.appendAccount(b), '"')
	}
	b = append(b, `,"currency":"`...)
	b = append(b, e.Currency()...)
	b = append(b, `","occurred_at":"`...)
	b = append(e.appendTime(b), `","amount":`...)
	b = e.appendAmount(b)
	b = e.appendAttributes(b)
	if e.Deleted {
		b = append(b, `,"is_deleted":true`...)
	}
	return append(b, '}')
}

func (e *Event) idField() string {
	if e.Side == stream.Left {
		return `"payment_id":"`
	}
	return `"signal_id":"`
}

func (e *Event) appendAttributes(b []byte) []byte {
	b = append(b, `,"country":"`...)
	b = append(b, e.Country()...)
	if e.Side == stream.Left {
		b = append(b, `","merchant":"`...)
		b = e.appendMerchant(b)
		b = append(b, `","method":"`...)
		b = append(append(b, e.Method()...), '"')
	} else {
		b = append(b, `","level":"`...)
		b = append(b, e.Level()...)
		b = append(b, `","score":`...)
		b = strconv.AppendInt(b, e.Score(), 10)
	}
	b = append(b, `,"reference":"`...)
	return append(e.appendReference(b), '"')
}

func (e *Event) appendMerchant(b []byte) []byte {
	return strconv.AppendUint(append(b, "shop-"...), 10_000+e.chance>>20%90_000, 10)
}

func (e *Event) appendReference(b []byte) []byte {
	return strconv.AppendUint(b, e.chance|1<<63, 36)
}

func (e *Event) appendID(b []byte) []byte {
	if e.Side == stream.Left {
		b = append(b, "pay-"...)
	} else {
		b = append(b, "sig-"...)
	}
	return appendPadded(b, uint64(e.Number), 8)
}

func (e *Event) appendAccount(b []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, "acc-"...)
	for shift := 44; shift >= 0; shift -= 4 {
		b = append(b, hex[e.Account>>shift&15])
	}
	return b
}

func (e *Event) appendAmount(b []byte) []byte {
	b = strconv.AppendInt(b, e.Cents/100, 10)
	return appendPadded(append(b, '.'), uint64(e.Cents%100), 2)
}

func (e *Event) appendTime(b []byte) []byte {
	if e.Defect == BadTime {
		return append(b, "yesterday"...)
	}
	return e.Time.Time().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
}

// appendPadded appends n with at least width digits.
func appendPadded(b []byte, n uint64, width int) []byte {
	var digits [20]byte
	i := len(digits)
	for n > 0 || width > 0 {
		i--
		digits[i] = byte('0' + n%10)
		n /= 10
		width--
	}
	return append(b, digits[i:]...)
}
