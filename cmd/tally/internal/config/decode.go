package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Error is one mistake in a configuration file. Key is dotted, with [n] for the nth of a list.
type Error struct {
	File    string
	Line    int
	Key     string
	Problem string
}

// Error gives file:line: key: problem.
func (e *Error) Error() string {
	where := fmt.Sprintf("%s:%d: ", e.File, e.Line)
	if e.Key != "" {
		where += e.Key + ": "
	}
	return where + e.Problem
}

// Unwrap makes the error an ErrInvalid.
func (e *Error) Unwrap() error { return ErrInvalid }

// nodeError is a mistake found while a value is decoded, when only its node is known.
type nodeError struct {
	token   *token.Token
	problem string
}

func (e *nodeError) Error() string { return e.problem }

func errorAt(node ast.Node, problem string) error {
	return &nodeError{token: node.GetToken(), problem: problem}
}

// decode reads the text into c: syntax, environment, unknown keys and types.
func (c *Config) decode(text []byte, lookup func(string) (string, bool)) error {
	c.keys = &keyIndex{lines: map[string]int{}, at: map[position]string{}}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return c.explain(err)
	}
	if len(file.Docs) > 1 {
		return &Error{File: c.name(), Line: 1, Problem: "more than one YAML document in the file"}
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return &Error{File: c.name(), Line: 1, Problem: "the file is empty; tally init writes one"}
	}
	body := file.Docs[0].Body
	c.keys.add("", body)
	if err := c.expand(body, lookup); err != nil {
		return err
	}
	if err := yaml.NodeToValue(body, c, yaml.Strict()); err != nil {
		return c.explain(err)
	}
	return nil
}

// name is how errors call the file: by its last element, as the user most often typed it.
func (c *Config) name() string { return filepath.Base(c.file) }

// explain turns a decoder's error into one that names line and key. The decoder's own text would
// quote the source, and with it secrets.
func (c *Config) explain(err error) error {
	if own, ok := errors.AsType[*nodeError](err); ok {
		return c.errorAtToken(own.token, own.problem)
	}
	if mismatch, ok := errors.AsType[*yaml.TypeError](err); ok {
		return c.errorAtToken(mismatch.Token, "want "+wanted(mismatch.DstType))
	}
	if overflow, ok := errors.AsType[*yaml.OverflowError](err); ok {
		return c.errorAtToken(overflow.Token, "the number is too large")
	}
	if unexpected, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); ok {
		return c.errorAtToken(unexpected.Token, fmt.Sprintf("want a %s, not a %s",
			strings.ToLower(unexpected.Expected.YAMLName()),
			strings.ToLower(unexpected.Actual.YAMLName())))
	}
	if unknown, ok := errors.AsType[*yaml.UnknownFieldError](err); ok {
		return c.errorAtToken(unknown.Token, "unknown key")
	}
	if located, ok := errors.AsType[yaml.Error](err); ok {
		return c.errorAtToken(located.GetToken(), located.GetMessage())
	}
	return &Error{File: c.name(), Line: 1, Problem: "the file can't be read as YAML"}
}

func (c *Config) errorAtToken(t *token.Token, problem string) error {
	if t == nil || t.Position == nil {
		return &Error{File: c.name(), Line: 1, Problem: problem}
	}
	return &Error{
		File: c.name(), Line: t.Position.Line, Key: c.keys.at[positionOf(t)],
		Problem: problem,
	}
}

// wanted says in the user's words what a Go type is in YAML.
func wanted(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "text; put numbers and true or false in quotes"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "keys and values"
	}
	return "a " + t.Kind().String()
}

var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand replaces ${NAME} in every string value by the environment's value.
func (c *Config) expand(root ast.Node, lookup func(string) (string, bool)) error {
	e := &expander{config: c, lookup: lookup}
	ast.Walk(e, root)
	return errors.Join(e.errs...)
}

type expander struct {
	config *Config
	lookup func(string) (string, bool)
	errs   []error
}

// Visit expands one node; it is called for every node of the file.
func (e *expander) Visit(node ast.Node) ast.Visitor {
	text, ok := node.(*ast.StringNode)
	if !ok {
		return e
	}
	text.Value = reference.ReplaceAllStringFunc(text.Value, func(found string) string {
		name := reference.FindStringSubmatch(found)[1]
		value, set := e.lookup(name)
		if !set {
			e.errs = append(e.errs, e.config.errorAtToken(text.GetToken(),
				fmt.Sprintf("environment variable %s is not set", name)))
		}
		return value
	})
	return e
}

// position is where a token stands in the file.
type position struct{ line, column int }

func positionOf(t *token.Token) position { return position{t.Position.Line, t.Position.Column} }

// keyIndex knows on which line each key of the file is, and which key a token belongs to.
type keyIndex struct {
	lines map[string]int
	at    map[position]string
}

func (k *keyIndex) has(key string) bool {
	_, ok := k.lines[key]
	return ok
}

// line gives the line of a key, or of its nearest parent that is in the file.
func (k *keyIndex) line(key string) int {
	for key != "" {
		if line, ok := k.lines[key]; ok {
			return line
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 1
}

// add indexes a node and everything below it under the given key.
func (k *keyIndex) add(key string, node ast.Node) {
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, entry := range n.Values {
			k.addEntry(key, entry)
		}
	case *ast.MappingValueNode:
		k.addEntry(key, n)
	case *ast.SequenceNode:
		k.note(key, node)
		for i, item := range n.Values {
			k.add(key+"["+strconv.Itoa(i+1)+"]", item)
		}
		return
	case *ast.AnchorNode:
		k.add(key, n.Value)
	case *ast.TagNode:
		k.add(key, n.Value)
	}
	k.note(key, node)
}

func (k *keyIndex) addEntry(parent string, entry *ast.MappingValueNode) {
	key := entry.Key.GetToken().Value
	if parent != "" {
		key = parent + "." + key
	}
	k.note(key, entry.Key)
	k.add(key, entry.Value)
}

func (k *keyIndex) note(key string, node ast.Node) {
	t := node.GetToken()
	if t == nil || t.Position == nil || key == "" {
		return
	}
	if _, known := k.lines[key]; !known {
		k.lines[key] = t.Position.Line
	}
	if _, known := k.at[positionOf(t)]; !known {
		k.at[positionOf(t)] = key
	}
}
