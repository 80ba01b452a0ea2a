package store

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Damage names something stored that is not what was written.
type Damage struct {
	Table string `json:"table"`
	// Row names the row within the shard; where a row is missing, what it belongs to.
	Row  string `json:"row"`
	What string `json:"what"`
}

// DamageError wraps ErrDamaged and names what is damaged.
type DamageError struct{ Found []Damage }

// damagesShown bounds how many an error's text names.
const damagesShown = 5

func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", ErrDamaged)
	for i, d := range e.Found {
		if i == damagesShown {
			fmt.Fprintf(&b, "; and %d more", len(e.Found)-i)
			break
		}
		fmt.Fprintf(&b, "; %s", d)
	}
	return b.String()
}

// Unwrap gives ErrDamaged.
func (e *DamageError) Unwrap() error { return ErrDamaged }

// String gives the table, the row and what is wrong with it.
func (d Damage) String() string { return fmt.Sprintf("%s (%s): %s", d.Table, d.Row, d.What) }

func damageError(found []Damage) error {
	if len(found) == 0 {
		return nil
	}
	return &DamageError{Found: found}
}

// damagesNoted bounds how many damaged rows an attempt keeps on record.
const damagesNoted = 1000

// describeDamage gives what an attempt keeps on record: a JSON array.
func describeDamage(list []Damage) string {
	noted := append([]Damage{}, list[:min(len(list), damagesNoted)]...)
	text, err := json.Marshal(noted)
	if err != nil {
		panic(fmt.Sprintf("store: describe damage %v: %v", noted, err))
	}
	return string(text)
}
