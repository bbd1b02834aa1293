package config

import (
	"bytes"
	"fmt"
	"strings"
)

// property is one entry of a Java properties file.
type property struct{ key, value string }

// setProperties returns a properties file with the given values in the place of those it has; keys
// it does not have go to the end.
func setProperties(base []byte, properties []property) []byte {
	var out bytes.Buffer
	done := map[string]bool{}
	for line := range bytes.Lines(base) {
		key := propertyKey(string(line))
		written := false
		for _, p := range properties {
			if key != p.key {
				continue
			}
			written = true
			if !done[key] {
				writeProperty(&out, p)
				done[key] = true
			}
		}
		if !written {
			out.Write(line)
			if !bytes.HasSuffix(line, []byte("\n")) {
				out.WriteByte('\n')
			}
		}
	}
	for _, p := range properties {
		if !done[p.key] {
			writeProperty(&out, p)
		}
	}
	return out.Bytes()
}

// propertyKey is the key of a line, "" for comments and blank lines.
func propertyKey(line string) string {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || line[0] == '!' {
		return ""
	}
	if end := strings.IndexAny(line, "=: \t"); end >= 0 {
		return line[:end]
	}
	return line
}

func writeProperty(out *bytes.Buffer, p property) {
	fmt.Fprintf(out, "%s=%s\n", p.key, escapeProperty(p.value))
}

// escapeProperty writes a value as java.util.Properties reads it: ISO 8859-1 with escapes for
// everything beyond ASCII.
func escapeProperty(value string) string {
	var out strings.Builder
	for i, r := range value {
		switch {
		case r == '\\' || (r == ' ' && i == 0):
			out.WriteByte('\\')
			out.WriteRune(r)
		case r < 0x20 || r > 0x7e:
			writeUTF16(&out, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// writeUTF16 writes a character as one escape, or as two (a surrogate pair) beyond the first 65536.
func writeUTF16(out *strings.Builder, r rune) {
	if r < 0x10000 {
		fmt.Fprintf(out, "\\u%04x", r)
		return
	}
	r -= 0x10000
	fmt.Fprintf(out, "\\u%04x\\u%04x", 0xd800+(r>>10), 0xdc00+(r&0x3ff))
}
