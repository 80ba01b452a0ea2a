package config

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed tally.yaml.tmpl
var templateText string

var fileTemplate = template.Must(template.New("tally.yaml").Parse(templateText))

// Template holds what differs between the configuration files that tally writes. All of it is put
// into the file as YAML, so the caller quotes what needs it.
type Template struct {
	Name string
	// Database is empty where the environment names it.
	Database string
	Schema   string
	// Left and Right are the sources, as flow mappings.
	Left, Right string
}

// Text gives the commented configuration file.
func (t Template) Text() string {
	var out strings.Builder
	if err := fileTemplate.Execute(&out, t); err != nil {
		panic(fmt.Sprintf("config: template: %v", err))
	}
	return out.String()
}

// InitTemplate is the file that tally init writes: two NDJSON files beside it.
func InitTemplate() Template {
	return Template{
		Name: "payments-risk", Schema: "tally",
		Left:  "{type: file, path: payments.ndjson}",
		Right: "{type: file, path: risk_signals.ndjson}",
	}
}
