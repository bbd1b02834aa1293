package cassandra

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// yamlFile is a cassandra.yaml as far as a node needs it: the settings of the first level, and the
// seeds. It is read by line rather than by a parser, which would cost more than everything else at
// a start.
type yamlFile struct {
	keys   []string
	values map[string]string
	// blocks are the lines below a key.
	blocks map[string]string
}

// parsedYAMLs is how many files are remembered: the same ones are read at every start.
const parsedYAMLs = 256

func (n *Network) parseYAML(text []byte) (*yamlFile, error) {
	if y, known := n.yamls[string(text)]; known {
		return y, nil
	}
	y := &yamlFile{values: map[string]string{}, blocks: map[string]string{}}
	key, begin := "", 0
	at := 0
	finish := func(end int) {
		if key != "" && end > begin {
			y.blocks[key] = string(text[begin:end])
		}
	}
	for line := range strings.Lines(string(text)) {
		start := at
		at += len(line)
		if first := line[0]; first == ' ' || first == '\t' || first == '#' || first == '-' || first == '\n' ||
			first == '\r' {
			continue
		}
		finish(start)
		name, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !found {
			return nil, fmt.Errorf("could not find expected ':' in %q", strings.TrimSpace(line))
		}
		if slices.Contains(y.keys, name) {
			return nil, fmt.Errorf("found duplicate key %s", name)
		}
		key, begin = name, at
		y.keys = append(y.keys, name)
		y.values[name] = scalar(value)
	}
	finish(len(text))
	if len(n.yamls) >= parsedYAMLs {
		clear(n.yamls)
	}
	n.yamls[string(text)] = y
	return y, nil
}

// scalar is a value without quotes and comments; null is empty.
func scalar(text string) string {
	text = strings.TrimSpace(text)
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		if end := strings.IndexByte(text[1:], text[0]); end >= 0 {
			return text[1 : 1+end]
		}
	}
	if i := strings.Index(text, " #"); i >= 0 {
		text = strings.TrimSpace(text[:i])
	}
	if strings.HasPrefix(text, "#") || text == "null" || text == "~" {
		return ""
	}
	return text
}

// seeds are the addresses that the seed provider lists; names of hosts do not resolve here and are
// left out, as Cassandra does with those.
func (y *yamlFile) seeds() []netip.Addr {
	var out []netip.Addr
	for line := range strings.Lines(y.blocks["seed_provider"]) {
		_, list, found := strings.Cut(strings.Replace(line, `"seeds"`, "seeds", 1), "seeds:")
		if !found || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, text := range strings.Split(scalar(list), ",") {
			text = strings.TrimSpace(text)
			address, err := netip.ParseAddr(text)
			if err != nil {
				if withPort, portErr := netip.ParseAddrPort(text); portErr == nil {
					address, err = withPort.Addr(), nil
				}
			}
			if err == nil && !slices.Contains(out, address) {
				out = append(out, address)
			}
		}
	}
	return out
}
