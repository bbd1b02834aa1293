package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is a cassandra.yaml that is edited key by key: the bytes of every key that is not
// changed, and all comments, stay as they are. The YAML library says where keys begin and writes
// new values; it never writes the whole file, because that would reformat what the image's authors
// wrote.
type document struct {
	lines   [][]byte // with their line ends
	entries []entry
}

// entry is one key of the mapping at the top, with the lines [start, end) that it takes.
type entry struct {
	name       string
	value      *yaml.Node
	start, end int
}

// parseDocument reads a YAML document whose root is a mapping in block style, or an empty one.
func parseDocument(data []byte) (*document, error) {
	root, err := parseMapping(data)
	if err != nil {
		return nil, err
	}
	d := &document{lines: bytes.SplitAfter(data, []byte("\n"))}
	if last := len(d.lines) - 1; len(d.lines[last]) == 0 {
		d.lines = d.lines[:last]
	}
	if root == nil {
		return d, nil
	}
	if root.Style&yaml.FlowStyle != 0 {
		return nil, errors.New("the document is written in braces; want one key per line")
	}
	for i := 0; i < len(root.Content); i += 2 {
		key := root.Content[i]
		start := key.Line - 1
		if key.Column != 1 || start < 0 || start >= len(d.lines) || (i > 0 && start <= d.entries[i/2-1].start) {
			return nil, fmt.Errorf("line %d: key %s does not begin a line", key.Line, key.Value)
		}
		d.entries = append(d.entries, entry{name: key.Value, value: root.Content[i+1], start: start})
	}
	for i := range d.entries {
		d.entries[i].end = d.endOf(i)
	}
	return d, nil
}

// parseMapping returns the mapping at the root of a YAML document; nil if the document is empty.
func parseMapping(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var node yaml.Node
	if err := decoder.Decode(&node); err != nil {
		if isEmptyDocument(data) {
			return nil, nil
		}
		return nil, err
	}
	var next yaml.Node
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
		return nil, nil
	}
	root := node.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("the document is no mapping")
	}
	seen := map[string]bool{}
	for i := 0; i < len(root.Content); i += 2 {
		key := root.Content[i]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: the key is no word", key.Line)
		}
		if seen[key.Value] {
			return nil, fmt.Errorf("line %d: key %s occurs twice", key.Line, key.Value)
		}
		seen[key.Value] = true
	}
	if line := aliasIn(root); line > 0 {
		return nil, fmt.Errorf("line %d: anchors and aliases are not supported", line)
	}
	return root, nil
}

// aliasIn is the line of the first alias below a node, 0 if there is none. With aliases a key could
// change its meaning by the edit of another.
func aliasIn(node *yaml.Node) int {
	if node.Kind == yaml.AliasNode {
		return node.Line
	}
	for _, child := range node.Content {
		if line := aliasIn(child); line > 0 {
			return line
		}
	}
	return 0
}

// isEmptyDocument says whether there is nothing but blank lines and comments.
func isEmptyDocument(data []byte) bool {
	for line := range bytes.Lines(data) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			return false
		}
	}
	return true
}

// endOf is the line after the last one of an entry. Comments at the beginning of a line and blank
// lines before the next key belong to that key.
func (d *document) endOf(i int) int {
	end := len(d.lines)
	if i+1 < len(d.entries) {
		end = d.entries[i+1].start
	}
	for end > d.entries[i].start+1 {
		line := d.lines[end-1]
		if len(bytes.TrimSpace(line)) > 0 && line[0] != '#' && !bytes.HasPrefix(line, []byte("...")) {
			break
		}
		end--
	}
	return end
}

// value of a key, nil if it is not there.
func (d *document) value(name string) *yaml.Node {
	for i := range d.entries {
		if d.entries[i].name == name {
			return d.entries[i].value
		}
	}
	return nil
}

// edits are the changes to be made to a document: new values by key, nil for a key to be removed.
// Keys are applied in the order given.
type edits struct {
	order  []string
	values map[string]*yaml.Node
	place  map[string]string // where a new key takes the place of another: of its old name
}

func (e *edits) set(name string, value *yaml.Node) {
	if e.values == nil {
		e.values = map[string]*yaml.Node{}
	}
	if _, known := e.values[name]; !known {
		e.order = append(e.order, name)
	}
	e.values[name] = value
}

func (e *edits) remove(name string) { e.set(name, nil) }

// rename sets a key in the place of another, which is removed.
func (e *edits) rename(old, name string, value *yaml.Node) {
	e.remove(old)
	e.set(name, value)
	if e.place == nil {
		e.place = map[string]string{}
	}
	e.place[name] = old
}

// apply returns the document with the edits. New keys go before their commented example if the
// document has one (`# listen_interface: eth0`), else to the end. The result is parsed again and
// compared: a document that this editor misreads is an error, never a wrong file.
func (d *document) apply(e *edits) ([]byte, error) {
	replacement := make(map[int][]byte, len(e.order)) // by start line of an entry
	insertion := map[int][]byte{}                     // before a line
	var appended []byte
	for _, name := range e.order {
		value := e.values[name]
		at := d.indexOf(name)
		if at >= 0 && value != nil && sameValue(d.entries[at].value, value) {
			continue
		}
		var text []byte
		if value != nil {
			var err error
			if text, err = encodeEntry(name, value); err != nil {
				return nil, fmt.Errorf("write %s: %w", name, err)
			}
		}
		if value != nil && !keyWord.MatchString(name) {
			return nil, fmt.Errorf("%q is no key of %s", name, CassandraYAML)
		}
		if at < 0 && value != nil {
			at = d.indexOf(e.place[name])
		}
		switch {
		case at >= 0:
			replacement[d.entries[at].start] = append(replacement[d.entries[at].start], text...)
		case value == nil:
		default:
			if line := d.exampleOf(name); line >= 0 {
				insertion[line] = append(insertion[line], text...)
			} else {
				appended = append(appended, text...)
			}
		}
	}
	out := d.splice(replacement, insertion, appended)
	if err := d.verify(out, e); err != nil {
		return nil, err
	}
	return out, nil
}

// keyWord are the names that settings of Cassandra have.
var keyWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (d *document) indexOf(name string) int {
	for i := range d.entries {
		if d.entries[i].name == name {
			return i
		}
	}
	return -1
}

var appendedHeading = []byte("\n# Set by Helenus.\n")

func (d *document) splice(replacement, insertion map[int][]byte, appended []byte) []byte {
	var out bytes.Buffer
	next := 0
	for line := 0; line < len(d.lines); line++ {
		out.Write(insertion[line])
		for next < len(d.entries) && d.entries[next].start < line {
			next++
		}
		if text, replaced := replacement[line]; replaced {
			out.Write(text)
			line = d.entries[next].end - 1
			continue
		}
		out.Write(d.lines[line])
		if line == len(d.lines)-1 && !bytes.HasSuffix(d.lines[line], []byte("\n")) {
			out.WriteByte('\n')
		}
	}
	if len(appended) > 0 {
		out.Write(appendedHeading)
		out.Write(appended)
	}
	return out.Bytes()
}

// exampleOf is the line of the commented example of a key that lies between entries; -1 if there is
// none.
func (d *document) exampleOf(name string) int {
	pattern := regexp.MustCompile(`^# ?` + regexp.QuoteMeta(name) + `:(\s|$)`)
	for line := range d.lines {
		if pattern.Match(d.lines[line]) && !d.inside(line) {
			return line
		}
	}
	return -1
}

func (d *document) inside(line int) bool {
	for i := range d.entries {
		if line >= d.entries[i].start && line < d.entries[i].end {
			return true
		}
	}
	return false
}

// verify says whether the written document holds the edits and, apart from them, what the base
// held.
func (d *document) verify(out []byte, e *edits) error {
	root, err := parseMapping(out)
	if err != nil {
		return fmt.Errorf("the edited document cannot be read: %w", err)
	}
	got := map[string]*yaml.Node{}
	if root != nil {
		for i := 0; i < len(root.Content); i += 2 {
			got[root.Content[i].Value] = root.Content[i+1]
		}
	}
	want := map[string]*yaml.Node{}
	for _, existing := range d.entries {
		want[existing.name] = existing.value
	}
	for name, value := range e.values {
		delete(want, name)
		if value != nil {
			want[name] = value
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("the document has a form that cannot be edited line by line: %d keys instead of %d", len(got),
			len(want))
	}
	for name, value := range want {
		if got[name] == nil || !sameValue(got[name], value) {
			return fmt.Errorf("the document has a form that cannot be edited line by line: %s would change its meaning",
				name)
		}
	}
	return nil
}

// encodeEntry writes one key with its value in block style.
func encodeEntry(name string, value *yaml.Node) ([]byte, error) {
	mapping := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{stringNode(name), value}}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(mapping); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// sameValue compares two values by meaning: comments, quotes and style do not count.
func sameValue(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode {
		return a.ShortTag() == b.ShortTag() && (a.Value == b.Value || a.ShortTag() == "!!null")
	}
	if a.Kind == yaml.MappingNode {
		return sameMapping(a, b)
	}
	for i := range a.Content {
		if !sameValue(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

func sameMapping(a, b *yaml.Node) bool {
	for i := 0; i < len(a.Content); i += 2 {
		other := lookup(b, a.Content[i].Value)
		if other == nil || !sameValue(a.Content[i+1], other) {
			return false
		}
	}
	return true
}

// lookup returns the value of a key in a mapping, nil if it is not there.
func lookup(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// plainWord are strings that YAML 1.1 (SnakeYAML) and 1.2 both read as themselves without quotes:
// words, class names, paths, and quantities.
var plainWord = regexp.MustCompile(
	`^([A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(ns|us|ms|s|m|h|d|B|KiB|MiB|GiB|B/s|KiB/s|MiB/s))$`,
)

// notPlain are words that YAML 1.1 reads as a boolean, null or a number.
var notPlain = map[string]bool{
	"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true,
	"nan": true, "inf": true,
}

// stringNode is a string that every YAML parser reads as a string.
func stringNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if !plainWord.MatchString(text) || notPlain[strings.ToLower(text)] {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}
