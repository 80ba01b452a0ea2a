package config

import (
	"encoding/json"
	"fmt"

	"github.com/tallystick/tallystick/reconcile/compare"
	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/source/record"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// JoinRule gives the rule as the join wants it.
func (c *Config) JoinRule() join.Rule {
	return join.Rule{
		Version:     string(c.Rule.Version),
		Kind:        join.Kind(c.Rule.Join),
		Before:      c.Rule.Before.Std(),
		After:       c.Rule.After.Std(),
		Lateness:    c.Rule.Lateness.Std(),
		Provisional: join.Policy(c.Rule.Provisional),
	}
}

// CompareFields gives the compared fields of a pair, in the order of the file.
func (c *Config) CompareFields() []compare.Field {
	fields := make([]compare.Field, len(c.Rule.Compare))
	for i, f := range c.Rule.Compare {
		fields[i] = f.field()
	}
	return fields
}

func (f Compare) field() compare.Field {
	return compare.Field{Left: f.Left, Right: f.Right, Tolerance: string(f.Tolerance)}
}

// RuleJSON is the rule as it is registered under its version: everything that decides which
// results there are, with sorted keys and durations in microseconds, so that an equal rule is equal
// as text.
func (c *Config) RuleJSON() string {
	type compared struct {
		Left      string `json:"left"`
		Right     string `json:"right"`
		Tolerance string `json:"tolerance"`
	}
	fields := make([]compared, len(c.Rule.Compare))
	for i, f := range c.Rule.Compare {
		fields[i] = compared{f.Left, f.Right, string(f.Tolerance)}
	}
	text, err := json.Marshal(map[string]any{
		"version":     c.Rule.Version,
		"join":        c.Rule.Join,
		"before_us":   c.Rule.Before.Std().Microseconds(),
		"after_us":    c.Rule.After.Std().Microseconds(),
		"lateness_us": c.Rule.Lateness.Std().Microseconds(),
		"provisional": c.Rule.Provisional,
		"compare":     fields,
		"left_key":    c.Left.Key,
		"right_key":   c.Right.Key,
	})
	if err != nil {
		panic(fmt.Sprintf("config: rule as JSON: %v", err))
	}
	return string(text)
}

// side gives one side's configuration.
func (c *Config) side(side stream.Side) *Side {
	if side == stream.Left {
		return &c.Left
	}
	return &c.Right
}

// Mapping says which fields of a side's records mean what. The compared fields stay in the
// attributes; those with a tolerance have to be numbers.
func (c *Config) Mapping(side stream.Side) record.Mapping {
	s := c.side(side)
	m := record.Mapping{
		ID:            s.ID,
		Revision:      s.Revision,
		Key:           s.Key,
		Time:          s.Time,
		TimeFormat:    s.TimeFormat,
		Deleted:       s.Deleted,
		MaxEventBytes: int(c.Limits.MaxEventBytes),
	}
	for _, f := range c.Rule.Compare {
		path := f.Left
		if side == stream.Right {
			path = f.Right
		}
		m.Keep = append(m.Keep, path)
		if f.Tolerance != "" {
			m.Numeric = append(m.Numeric, path)
		}
	}
	return m
}
