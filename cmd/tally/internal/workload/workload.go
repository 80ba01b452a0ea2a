// Package workload generates payments and the risk signals about them: two event streams with the
// disorder of real ones, the same for the same seed.
//
// A payment's account is random, and a signal about it carries the same account and currency up to
// DelayMax later. Each side arrives in an order of its own: mostly by event time, with small
// jitter, and with late, revised, deleted, repeated and malformed records among them.
package workload

import (
	"fmt"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// The bounds of disorder, in event time. A configuration that joins the two streams completely has
// an out_of_orderness of at least JitterMax, a window of DelayMax and a lateness over LateMax.
const (
	JitterMax = 8 * time.Second
	DelayMax  = 8 * time.Minute
	// LateMax bounds how long after its time an event, or a revision of it, still arrives when it
	// counts as late but allowed.
	LateMax = 4 * time.Minute
	// hopelessMin and hopelessMax bound the lag of events past every horizon.
	hopelessMin, hopelessMax = 20 * time.Minute, 30 * time.Minute
	repeatMax                = 30 * time.Second
)

// stepMin is the usual distance of two payments; spanMin is what a small workload covers, so that
// events past the horizon can occur in it.
const (
	stepMin = 10 * time.Millisecond
	spanMin = 2 * time.Hour
)

// Config says what to generate. Shares are of the events of a side, 0 to 1.
type Config struct {
	// Events is about how many events both sides have together, revisions and repeats not counted.
	Events int
	Seed   uint64
	// Start is the event time of the first payment.
	Start time.Time
	// Step is the event time between two payments; 0 chooses 10ms, or more for a small workload.
	Step time.Duration
	// Partners is how many signals a payment has on average.
	Partners float64
	// Revised events come again with a higher revision and another amount, Deleted ones as a
	// tombstone, Duplicated ones unchanged.
	Revised, Deleted, Duplicated float64
	// Late events arrive far behind the others, but in time to be joined; PastHorizon ones don't.
	Late, PastHorizon float64
	// Malformed records can't be read as events; they come on top.
	Malformed float64
}

// Default is the workload of the measurements: one partner each on average, 1 in 20 revised, 1 in
// 50 late but allowed, 1 in 100 repeated.
func Default() Config {
	return Config{
		Events:     100_000,
		Seed:       1,
		Start:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Partners:   1,
		Revised:    0.05,
		Late:       0.02,
		Duplicated: 0.01,
	}
}

// Validate reports the first impossible value by the name of its flag.
func (c *Config) Validate() error {
	shares := []struct {
		name  string
		value float64
	}{
		{"revised", c.Revised},
		{"deleted", c.Deleted},
		{"duplicated", c.Duplicated},
		{"late", c.Late},
		{"past-horizon", c.PastHorizon},
		{"malformed", c.Malformed},
	}
	for _, s := range shares {
		if !(s.value >= 0 && s.value <= 1) {
			return fmt.Errorf("--%s %v: want a share from 0 to 1", s.name, s.value)
		}
	}
	switch {
	case c.Events < 2:
		return fmt.Errorf("--events %d: want at least 2", c.Events)
	case !(c.Partners >= 0 && c.Partners <= 100):
		return fmt.Errorf("--partners %v: want 0 to 100", c.Partners)
	case c.Step < 0 || c.Step%time.Microsecond != 0:
		return fmt.Errorf("--step %s: want whole microseconds, not negative", c.Step)
	}
	return nil
}

// Payments is how many payments there are: events without revisions and repeats.
func (c *Config) Payments() int {
	return max(1, int(float64(c.Events)/(1+c.Partners)))
}

// step gives Step, chosen where it is 0.
func (c *Config) step() time.Duration {
	if c.Step > 0 {
		return c.Step
	}
	return max(stepMin, (spanMin / time.Duration(c.Payments())).Truncate(time.Microsecond))
}

// Span is the event time from the first payment to the last.
func (c *Config) Span() time.Duration { return c.step() * time.Duration(c.Payments()-1) }

// Defect is what is wrong with a malformed record.
type Defect uint8

// The defects; every one is quarantined under another reason.
const (
	Sound Defect = iota
	NoID
	NoKey
	BadTime
	NotJSON // in a table, which can't hold such a thing, a row without time
	defects
)

// Event is one record of a side.
type Event struct {
	Side stream.Side
	// Number makes the id: 1 for the first event of its side to arrive.
	Number   int64
	Revision int64
	// Account is random and unique to a payment; its signals carry the same.
	Account uint64
	Time    stream.Micros
	// Arrival is when the event turns up, on the clock of event times.
	Arrival stream.Micros
	// Cents is the amount.
	Cents   int64
	Deleted bool
	Defect  Defect
	// chance decides the attributes.
	chance uint64
}

// pending is an event that has not arrived yet, and what is still to follow it.
type pending struct {
	Event
	// follows is false for the first arrival of an event: it gets its number then.
	follows bool
}

// Stream gives the events of one side in the order they arrive.
type Stream struct {
	config   Config
	side     stream.Side
	step     time.Duration
	payments int64
	// next is the payment whose events are not in the queue yet.
	next    int64
	numbers int64
	queue   queue
}

// New starts a side's stream. The configuration must be valid.
func New(config Config, side stream.Side) *Stream {
	return &Stream{
		config: config, side: side, step: config.step(),
		payments: int64(config.Payments()),
	}
}

// Next gives the next event to arrive; false at the end.
func (s *Stream) Next() (Event, bool) {
	if _, more := s.peek(); !more {
		return Event{}, false
	}
	p := s.queue.pop()
	if !p.follows {
		s.numbers++
		p.Number = s.numbers
		s.follow(&p)
	}
	return p.Event, true
}

// peek gives the arrival of the next event; false at the end.
func (s *Stream) peek() (stream.Micros, bool) {
	for s.next < s.payments &&
		(s.queue.empty() || s.paymentTime(s.next) <= s.queue.first()) {
		s.enqueue(s.next)
		s.next++
	}
	if s.queue.empty() {
		return 0, false
	}
	return s.queue.first(), true
}

// paymentTime is the event time of a payment; nothing about it arrives earlier.
func (s *Stream) paymentTime(payment int64) stream.Micros {
	return stream.MicrosOf(s.config.Start).Add(time.Duration(payment) * s.step)
}

// enqueue adds the events of this side about one payment: the payment, or the signals.
func (s *Stream) enqueue(payment int64) {
	shared := newChance(s.config.Seed, 0, uint64(payment))
	account, cents := shared.next()>>16, 100+int64(shared.next()%100_000)
	at := s.paymentTime(payment)
	if s.side == stream.Left {
		own := newChance(s.config.Seed, 1, uint64(payment))
		s.first(&own, account, cents, at)
		return
	}
	own := newChance(s.config.Seed, 2, uint64(payment))
	for range s.partners(&own) {
		seen := cents
		switch percent := own.next() % 100; {
		case percent < 2: // off by more than a cent: a break
			seen += 2 + int64(own.next()%500)
		case percent < 4:
			seen++
		}
		s.first(&own, account, seen, at.Add(own.within(0, DelayMax)))
	}
}

// partners gives the number of signals of one payment: the average, sometimes one less or more.
func (s *Stream) partners(c *chance) int {
	n := int(s.config.Partners)
	if c.hit(s.config.Partners - float64(n)) {
		n++
	}
	const spread = 0.05
	switch {
	case n > 0 && c.hit(spread):
		n--
	case n > 0 && c.hit(spread/(1-spread)):
		n++
	}
	return n
}

// first queues an event's first arrival, and now and then a malformed record beside it.
func (s *Stream) first(c *chance, account uint64, cents int64, at stream.Micros) {
	event := Event{Side: s.side, Revision: 1, Account: account, Time: at, Cents: cents}
	lag := c.within(0, JitterMax)
	switch {
	case c.hit(s.config.PastHorizon):
		lag = c.within(hopelessMin, hopelessMax)
	case c.hit(s.config.Late):
		lag = c.within(JitterMax, LateMax)
	}
	event.Arrival = at.Add(lag)
	event.chance = c.next()
	s.push(event, false)
	if c.hit(s.config.Malformed) {
		event.Defect = 1 + Defect(c.next()%uint64(defects-1))
		event.chance = c.next()
		s.push(event, false)
	}
}

// follow queues what comes after an event's first arrival: revision, tombstone, repeat. They stay
// within LateMax of the event's time, so that they find it where it can still change.
func (s *Stream) follow(p *pending) {
	if p.Defect != Sound || p.Arrival > p.Time.Add(LateMax) {
		return
	}
	c := newChance(s.config.Seed, 3+uint64(s.side), p.chance)
	repeat, revise, remove := c.hit(s.config.Duplicated), c.hit(s.config.Revised),
		c.hit(s.config.Deleted)
	event := p.Event
	if repeat {
		again := event
		again.Arrival = again.Arrival.Add(c.within(0, repeatMax))
		s.push(again, true)
	}
	if revise {
		event = s.again(&c, event)
		event.Cents += 1 + int64(c.next()%200)
		s.push(event, true)
	}
	if remove {
		event = s.again(&c, event)
		event.Deleted = true
		s.push(event, true)
	}
}

// again gives the next revision of an event, some time after the last.
func (s *Stream) again(c *chance, event Event) Event {
	event.Revision++
	left := time.Duration(event.Time.Add(LateMax)-event.Arrival) * time.Microsecond
	event.Arrival = event.Arrival.Add(c.within(0, left))
	return event
}

func (s *Stream) push(event Event, follows bool) {
	s.queue.push(pending{Event: event, follows: follows})
}
