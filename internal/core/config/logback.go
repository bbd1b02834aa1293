package config

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

// systemLog is the one file that is left, at most twice 10 MB: the agent reads from it what ended
// the JVM.
const systemLog = `
  <!-- Set by Helenus: the end of the log, for the agent. -->
  <appender name="HELENUS" class="ch.qos.logback.core.rolling.RollingFileAppender">
    <file>${cassandra.logdir}/system.log</file>
    <rollingPolicy class="ch.qos.logback.core.rolling.FixedWindowRollingPolicy">
      <fileNamePattern>${cassandra.logdir}/system.log.%i</fileNamePattern>
      <minIndex>1</minIndex>
      <maxIndex>1</maxIndex>
    </rollingPolicy>
    <triggeringPolicy class="ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy">
      <maxFileSize>10MB</maxFileSize>
    </triggeringPolicy>
    <encoder>
      <pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern>
    </encoder>
  </appender>
`

// renderLogback makes the image's logback.xml log to standard output, which is the container's log,
// and to one small file:
//   - the image's appenders that write files go, and with them those that only feed them: they may
//     grow to gigabytes on a volume of the pod;
//   - the console shows what the loggers let through: its filter goes, and loggers that are DEBUG
//     only for debug.log are INFO. So nodetool setlogginglevel has
//     the effect one expects.
//
// Everything else, comments included, stays byte for byte.
func renderLogback(base []byte) ([]byte, error) {
	root, err := parseXML(base)
	if err != nil {
		return nil, err
	}
	var cuts []span
	removed := fileAppenders(root)
	hasConsole := false
	for _, appender := range root.all("appender") {
		if removed[appender.attribute("name")] {
			cuts = append(cuts, appender.span)
			continue
		}
		if strings.HasSuffix(appender.attribute("class"), ".ConsoleAppender") {
			hasConsole = true
			for _, filter := range appender.children {
				if filter.name == "filter" && strings.HasSuffix(filter.attribute("class"), ".ThresholdFilter") {
					cuts = append(cuts, filter.span)
				}
			}
		}
	}
	if !hasConsole {
		return nil, errors.New("no appender writes to the console")
	}
	for _, reference := range root.all("appender-ref") {
		if removed[reference.attribute("ref")] {
			cuts = append(cuts, reference.span)
		}
	}
	out, err := withSystemLog(cut(base, cuts))
	if err != nil {
		return nil, err
	}
	return withoutDebugLevel(out)
}

// withSystemLog adds the small file to the root logger.
func withSystemLog(data []byte) ([]byte, error) {
	document, err := parseXML(data)
	if err != nil {
		return nil, fmt.Errorf("read again without file appenders: %w", err)
	}
	roots := document.all("root")
	if len(roots) != 1 || roots[0].opening.end == roots[0].span.end {
		return nil, errors.New("want one root logger with appenders")
	}
	var out bytes.Buffer
	before := bytes.LastIndexByte(data[:roots[0].span.start], '\n') + 1
	out.Write(bytes.TrimRight(data[:before], "\n"))
	out.WriteString("\n" + systemLog + "\n")
	out.Write(data[before:roots[0].opening.end])
	out.WriteString("\n    <appender-ref ref=\"HELENUS\" />")
	out.Write(data[roots[0].opening.end:])
	return out.Bytes(), nil
}

// fileAppenders are the names of appenders that write files, and of those that pass on to such ones
// only.
func fileAppenders(root *element) map[string]bool {
	removed := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for _, appender := range root.all("appender") {
			name := appender.attribute("name")
			if removed[name] {
				continue
			}
			targets := appender.all("appender-ref")
			feedsFiles := len(targets) > 0
			for _, target := range targets {
				feedsFiles = feedsFiles && removed[target.attribute("ref")]
			}
			if feedsFiles || strings.HasSuffix(appender.attribute("class"), "FileAppender") {
				removed[name], changed = true, true
			}
		}
	}
	return removed
}

// withoutDebugLevel sets loggers of the level DEBUG to INFO.
func withoutDebugLevel(data []byte) ([]byte, error) {
	root, err := parseXML(data)
	if err != nil {
		return nil, fmt.Errorf("read again without file appenders: %w", err)
	}
	loggers := root.all("logger")
	for i := len(loggers) - 1; i >= 0; i-- {
		s := loggers[i].opening
		if loggers[i].attribute("level") == "DEBUG" {
			tag := bytes.Replace(data[s.start:s.end], []byte(`"DEBUG"`), []byte(`"INFO"`), 1)
			data = bytes.Join([][]byte{data[:s.start], tag, data[s.end:]}, nil)
		}
	}
	return data, nil
}

// span are the bytes [start, end) of a document.
type span struct{ start, end int64 }

// element of an XML document with the place where it stands.
type element struct {
	name       string
	attributes []xml.Attr
	children   []*element
	span       span
	opening    span
}

func parseXML(data []byte) (*element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	decoder.CharsetReader = func(label string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("encoding %s is not supported", label)
	}
	document := &element{}
	stack := []*element{document}
	for {
		start := decoder.InputOffset()
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return document, nil
		}
		if err != nil {
			return nil, err
		}
		parent := stack[len(stack)-1]
		switch t := token.(type) {
		case xml.StartElement:
			child := &element{name: t.Name.Local, attributes: t.Copy().Attr,
				opening: span{start, decoder.InputOffset()}}
			child.span.start = start
			parent.children = append(parent.children, child)
			stack = append(stack, child)
		case xml.EndElement:
			parent.span.end = decoder.InputOffset()
			stack = stack[:len(stack)-1]
		}
	}
}

// all elements of a name below this one, in the order of the document.
func (e *element) all(name string) []*element {
	var found []*element
	for _, child := range e.children {
		if child.name == name {
			found = append(found, child)
		}
		found = append(found, child.all(name)...)
	}
	return found
}

func (e *element) attribute(name string) string {
	for _, a := range e.attributes {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// cut removes parts of a document, and lines that hold no more than a comment on them.
func cut(data []byte, cuts []span) []byte {
	sort.Slice(cuts, func(i, j int) bool { return cuts[i].start < cuts[j].start })
	var out bytes.Buffer
	var position int64
	for _, c := range cuts {
		if c.start < position {
			continue // inside of a part that is gone already
		}
		start, end := c.start, c.end
		lineStart := int64(bytes.LastIndexByte(data[:start], '\n') + 1)
		lineEnd := end + int64(bytes.IndexByte(data[end:], '\n')) + 1
		if lineStart >= position && lineEnd > end &&
			len(bytes.TrimSpace(data[lineStart:start])) == 0 && isBlankOrComment(data[end:lineEnd]) {
			start, end = lineStart, lineEnd
		}
		out.Write(data[position:start])
		position = end
	}
	out.Write(data[position:])
	return out.Bytes()
}

// isBlankOrComment says whether the rest of a line is nothing but one comment.
func isBlankOrComment(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	return len(rest) == 0 || (bytes.HasPrefix(rest, []byte("<!--")) && bytes.Index(rest, []byte("-->")) == len(rest)-3)
}
