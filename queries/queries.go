// Package queries holds the product's SQL in files: the engine's statements, the statements of
// commands, those of the benchmark and of the crash lab, and the named queries that analysts run with tally query or
// with psql.
//
// The files name the schema as :"schema", as psql would, so they serve any schema name.
package queries

import (
	"embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed engine/*.sql named/*.sql command/*.sql bench/*.sql torture/*.sql
var files embed.FS

// Engine gives the text of an engine statement: the file engine/NAME.sql. It panics when there is
// no such file, which is an error of the program.
func Engine(name string) string { return mustRead("engine", name) }

// Command gives the text of a command's statement: the file command/NAME.sql. It panics when there
// is no such file, which is an error of the program.
func Command(name string) string { return mustRead("command", name) }

// Bench gives the text of a statement of the benchmark: the file bench/NAME.sql. It panics when
// there is no such file, which is an error of the program.
func Bench(name string) string { return mustRead("bench", name) }

// Torture gives the text of a statement of the crash lab: the file torture/NAME.sql. It panics when
// there is no such file, which is an error of the program.
func Torture(name string) string { return mustRead("torture", name) }

// Render puts the schema's quoted name in place of every :"schema" in the text of a statement.
func Render(text, schema string) string {
	return strings.ReplaceAll(text, `:"schema"`, pgx.Identifier{schema}.Sanitize())
}

func mustRead(directory, name string) string {
	text, err := files.ReadFile(directory + "/" + name + ".sql")
	if err != nil {
		panic(fmt.Sprintf("queries: no statement %s in %s", name, directory))
	}
	return string(text)
}
