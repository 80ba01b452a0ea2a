// Package config reads tally.yaml and turns it into what the packages below are built from:
// sources, mappings and the join rule. Every error names the file, the line and the key.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store/archive"
)

// FileDefault is the configuration file where none is named.
const FileDefault = "tally.yaml"

// The source types of this version.
const (
	TypeFile     = "file"
	TypePostgres = "postgres"
)

// ErrInvalid reports a configuration that the user has to correct.
var ErrInvalid = errors.New("invalid configuration")

// Config is a checked configuration, defaults filled in.
type Config struct {
	Name     string   `yaml:"name"`
	Database Secret   `yaml:"database"`
	Schema   string   `yaml:"schema"`
	Rule     Rule     `yaml:"rule"`
	Left     Side     `yaml:"left"`
	Right    Side     `yaml:"right"`
	Epoch    Epoch    `yaml:"epoch"`
	Shards   int      `yaml:"shards"`
	LeaseFor Duration `yaml:"lease_for"`
	State    State    `yaml:"state"`
	Retain   Retain   `yaml:"retain"`
	Archive  Archive  `yaml:"archive"`
	Limits   Limits   `yaml:"limits"`
	HTTP     HTTP     `yaml:"http"`

	file string
	keys *keyIndex
}

// Rule is the join rule as configured.
type Rule struct {
	Version     Text      `yaml:"version"`
	Join        string    `yaml:"join"`
	Before      Duration  `yaml:"before"`
	After       Duration  `yaml:"after"`
	Lateness    Duration  `yaml:"lateness"`
	Provisional string    `yaml:"provisional"`
	Compare     []Compare `yaml:"compare"`
}

// Compare is one compared field of a pair; Tolerance is an amount, a percentage or empty.
type Compare struct {
	Left      string `yaml:"left"`
	Right     string `yaml:"right"`
	Tolerance Text   `yaml:"tolerance"`
}

// Side is one of the two streams: where it comes from and which fields mean what.
type Side struct {
	Source         Sources  `yaml:"source"`
	ID             string   `yaml:"id"`
	Revision       string   `yaml:"revision"`
	Key            Fields   `yaml:"key"`
	Time           string   `yaml:"time"`
	TimeFormat     string   `yaml:"time_format"`
	Deleted        string   `yaml:"deleted"`
	OutOfOrderness Duration `yaml:"out_of_orderness"`
	IdleAfter      Duration `yaml:"idle_after"`
}

// Source is where events come from. Which fields apply depends on Type: file or postgres.
type Source struct {
	Type string `yaml:"type"`
	Name string `yaml:"name"`

	Path      string `yaml:"path"`
	Format    string `yaml:"format"`
	Delimiter string `yaml:"delimiter"`

	Table       string `yaml:"table"`
	Cursor      string `yaml:"cursor"`
	Transaction string `yaml:"transaction"`
	Consistency string `yaml:"consistency"`
	Database    Secret `yaml:"database"`

	AcknowledgeBehind int `yaml:"acknowledge_behind"`
}

// Epoch bounds one epoch.
type Epoch struct {
	MaxEvents int      `yaml:"max_events"`
	MaxDelay  Duration `yaml:"max_delay"`
}

// State bounds what is held in memory.
type State struct {
	CacheRows int `yaml:"cache_rows"`
}

// Retain says how far back epochs can be restored: whichever of the two is reached first, but never
// less than the newest two.
type Retain struct {
	Epochs int      `yaml:"epochs"`
	For    Duration `yaml:"for"`
}

// Archive says where independent snapshots go, how often, and how many of each shard are kept.
type Archive struct {
	URL   Secret   `yaml:"url"`
	Every Duration `yaml:"every"`
	Keep  int      `yaml:"keep"`
}

// Limits guard against input that would hurt.
type Limits struct {
	MaxAhead       Duration `yaml:"max_ahead"`
	MaxSkew        Duration `yaml:"max_skew"`
	MaxEventBytes  Size     `yaml:"max_event_bytes"`
	MaxPairsPerKey int      `yaml:"max_pairs_per_key"`
}

// HTTP is where the console listens.
type HTTP struct {
	Listen string `yaml:"listen"`
}

// Load reads and checks a file. Its errors wrap ErrInvalid; there may be several, one a line.
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: no file %s; tally init writes one, -c names another",
			ErrInvalid, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return Parse(path, text, os.LookupEnv)
}

// Parse reads and checks the text of a file; lookup finds environment variables.
func Parse(path string, text []byte, lookup func(string) (string, bool)) (*Config, error) {
	c := defaults()
	c.file = path
	if err := c.decode(text, lookup); err != nil {
		return nil, err
	}
	if c.Database == "" {
		url, _ := lookup("DATABASE_URL") // empty: pgx goes on to the PG variables
		c.Database = Secret(url)
	}
	c.fillNames()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// Dir is the directory that relative paths of sources start from: the configuration file's.
func (c *Config) Dir() string { return filepath.Dir(c.file) }

// File is the path the configuration was read from.
func (c *Config) File() string { return c.file }

// Sources gives the sources of a side in the order of the file.
func (c *Config) Sources(side stream.Side) []Source { return c.side(side).Source }

// Inert names the keys that the file sets and this version accepts without acting on them.
func (c *Config) Inert() []string {
	var set []string
	for _, key := range []string{"http"} {
		if c.keys.has(key) {
			set = append(set, key)
		}
	}
	return set
}

// String describes the configuration without any secret.
func (c Config) String() string {
	return fmt.Sprintf("%s: reconciliation %s in schema %s, rule %s", c.file, c.Name, c.Schema,
		c.Rule.Version)
}

// LogValue is what a log shows of a configuration: no secret.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("file", c.file),
		slog.String("name", c.Name),
		slog.String("schema", c.Schema),
		slog.String("rule", string(c.Rule.Version)),
		slog.Any("left", c.Left.names()),
		slog.Any("right", c.Right.names()),
	)
}

func defaults() *Config {
	return &Config{
		Schema:   "tally",
		LeaseFor: Duration(10 * time.Second),
		Rule:     Rule{Provisional: "at-window-close"},
		Epoch:    Epoch{MaxEvents: 20000, MaxDelay: Duration(50 * time.Millisecond)},
		Shards:   1,
		State:    State{CacheRows: 2_000_000},
		Retain:   Retain{Epochs: 100, For: Duration(24 * time.Hour)},
		Archive:  Archive{Every: Duration(10 * time.Minute), Keep: archive.KeepMin},
		Limits: Limits{
			MaxAhead:       Duration(24 * time.Hour),
			MaxSkew:        Duration(5 * time.Minute),
			MaxEventBytes:  1 << 20,
			MaxPairsPerKey: 100_000,
		},
	}
}

// fillNames names the sources that have no name after what they read.
func (c *Config) fillNames() {
	for _, side := range []*Side{&c.Left, &c.Right} {
		for i := range side.Source {
			s := &side.Source[i]
			switch {
			case s.Name != "":
			case s.Type == TypeFile:
				s.Name = filepath.Base(s.Path)
			case s.Type == TypePostgres:
				s.Name = s.Table
			}
		}
	}
}

func (s *Side) names() []string {
	names := make([]string, len(s.Source))
	for i := range s.Source {
		names[i] = s.Source[i].Name
	}
	return names
}

// String names the source without its secrets.
func (s Source) String() string {
	what := s.Path
	if s.Type == TypePostgres {
		what = s.Table
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", s.Type, what))
}
