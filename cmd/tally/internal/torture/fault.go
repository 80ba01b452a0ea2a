package torture

import (
	"fmt"
	"slices"
	"strings"
)

// Step is a place in the life of an epoch at which something can break.
type Step string

// steps are all of them, in the order in which an epoch passes them; K12 is beside the epochs.
var steps = []struct {
	Step
	what string
}{
	{"K0", "before BEGIN"},
	{"K1", "after the fence check"},
	{"K2", "after the source read"},
	{"K3", "after buffer rows"},
	{"K4", "after results"},
	{"K5", "after transitions"},
	{"K6", "after offsets and watermark"},
	{"K7", "after the manifest"},
	{"K8", "COMMIT sent, not executed"},
	{"K9", "COMMIT durable, reply lost"},
	{"K10", "reply received, source not acknowledged"},
	{"K11", "source acknowledged"},
	{"K12", "inside purging"},
}

// Mode is how something breaks.
type Mode string

// The modes. Damage happens between two runs and has no step.
const (
	Kill   Mode = "kill"   // SIGKILL
	Stop   Mode = "stop"   // SIGSTOP for three leases, while another worker takes over
	Cancel Mode = "cancel" // the run is cancelled, as by SIGTERM
	Cut    Mode = "cut"    // the connection breaks
	Damage Mode = "damage" // a stored row is changed by hand
)

// Modes gives all of them.
func Modes() []Mode { return []Mode{Kill, Stop, Cancel, Cut, Damage} }

// Fault is one thing that breaks once: the first time its step is reached in or after its epoch.
type Fault struct {
	Epoch int64 `json:"epoch"`
	Step  Step  `json:"step,omitempty"`
	Mode  Mode  `json:"mode"`
	// Second is the second of two ways to be at a step: the upsert of results instead of their
	// COPY, a step of a purge instead of its mark, the message already sent instead of held back, the worker killed before the damage.
	Second bool `json:"second,omitempty"`
	// Damage names what happens to which table in mode damage.
	Damage string `json:"damage,omitempty"`
}

// String names the fault without its epoch.
func (f Fault) String() string {
	if f.Mode == Damage {
		return "damage " + f.Damage
	}
	return fmt.Sprintf("%s %s", f.Step, f.Mode)
}

// Filter narrows the faults down; empty fields allow all.
type Filter struct {
	Step Step
	Mode Mode
}

// ParseFilter reads the values of --step and --mode, either of them empty for all.
func ParseFilter(step, mode string) (Filter, error) {
	f := Filter{Step: Step(strings.ToUpper(step)), Mode: Mode(strings.ToLower(mode))}
	if f.Step != "" && f.Step.what() == "" {
		return f, fmt.Errorf("--step %s: want K0 to K%d", step, len(steps)-1)
	}
	if f.Mode != "" && !slices.Contains(Modes(), f.Mode) {
		return f, fmt.Errorf("--mode %s: want kill, stop, cancel, cut or damage", mode)
	}
	if f.Step != "" && f.Mode == Damage {
		return f, fmt.Errorf("--step %s: damage happens between two runs, at no step", step)
	}
	return f, nil
}

// String gives the filter as it stands on a command line.
func (f Filter) String() string {
	var b strings.Builder
	if f.Step != "" {
		fmt.Fprintf(&b, " --step %s", f.Step)
	}
	if f.Mode != "" {
		fmt.Fprintf(&b, " --mode %s", f.Mode)
	}
	return b.String()
}

func (s Step) what() string {
	for _, known := range steps {
		if known.Step == s {
			return known.what
		}
	}
	return ""
}

// cells are the kinds of fault that pass the filter.
func (f Filter) cells() []Fault {
	var all []Fault
	for _, s := range steps {
		for _, m := range []Mode{Kill, Stop, Cancel, Cut} {
			if (f.Step == "" || f.Step == s.Step) && (f.Mode == "" || f.Mode == m) {
				all = append(all, Fault{Step: s.Step, Mode: m})
			}
		}
	}
	if f.Step == "" && (f.Mode == "" || f.Mode == Damage) {
		for _, name := range damageNames() {
			all = append(all, Fault{Mode: Damage, Damage: name})
		}
	}
	return all
}
