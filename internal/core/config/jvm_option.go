package config

import (
	"bytes"
	"regexp"
	"strings"
)

// optionKey names what an option of the JVM sets: two options with the same key cannot both hold.
// -XX:+UseG1GC and -XX:-UseG1GC have the same, and so have two values of one system property.
func optionKey(option string) string {
	switch {
	case strings.HasPrefix(option, "-XX:+"), strings.HasPrefix(option, "-XX:-"):
		return "-XX:" + option[5:]
	case strings.HasPrefix(option, "-XX:"), strings.HasPrefix(option, "-D"):
		name, _, _ := strings.Cut(option, "=")
		return name
	}
	if match := sizedOption.FindString(option); match != "" {
		return match
	}
	for _, prefix := range []string{"-enableassertions", "-disableassertions", "-ea", "-da"} {
		if rest, found := strings.CutPrefix(option, prefix); found && (rest == "" || rest[0] == ':') {
			return "-ea" + rest
		}
	}
	return option
}

// sizedOption are the options whose value follows without a separator: -Xmx4G.
var sizedOption = regexp.MustCompile(`^-X(ms|mx|mn|ss)`)

// collectors are the garbage collectors of HotSpot; the JVM does not start with two of them. With
// each go the prefixes of options that only it has.
var collectors = map[string][]string{
	"-XX:UseG1GC":            {"-XX:G1", "-XX:InitiatingHeapOccupancyPercent"},
	"-XX:UseConcMarkSweepGC": {"-XX:CMS", "-XX:UseCMS"},
	"-XX:UseParallelGC":      {"-XX:UseAdaptiveSizePolicy"},
	"-XX:UseParallelOldGC":   nil,
	"-XX:UseSerialGC":        nil,
	"-XX:UseShenandoahGC":    {"-XX:Shenandoah"},
	"-XX:UseZGC":             {"-XX:Z"},
	"-XX:UseEpsilonGC":       {"-XX:Epsilon"},
}

// collectorOf is the key of the collector that the options turn on last, "" for none.
func collectorOf(options []string) string {
	chosen := ""
	for _, option := range options {
		if _, isCollector := collectors[optionKey(option)]; isCollector && strings.HasPrefix(option, "-XX:+") {
			chosen = optionKey(option)
		}
	}
	return chosen
}

// ofOtherCollector says whether an option turns on, or belongs to, another collector than the
// chosen one.
func ofOtherCollector(option, chosen string) bool {
	if chosen == "" {
		return false
	}
	key := optionKey(option)
	for collector, prefixes := range collectors {
		if collector == chosen {
			continue
		}
		if key == collector {
			return true
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
	}
	return false
}

// isLogOfGC says whether an option logs garbage collection (-Xlog:gc…). cassandra-env.sh adds a log
// file of its own unless it finds one.
func isLogOfGC(option string) bool { return strings.HasPrefix(option, "-Xlog:gc") }

// optionsFile is one of the image's files of JVM options. bin/cassandra takes the lines that begin
// with a dash.
type optionsFile struct{ lines []string }

func parseOptions(data []byte) *optionsFile {
	var f optionsFile
	for line := range bytes.Lines(data) {
		f.lines = append(f.lines, strings.TrimRight(string(line), "\r\n"))
	}
	return &f
}

// options that are in force.
func (f *optionsFile) options() []string {
	var options []string
	for _, line := range f.lines {
		if strings.HasPrefix(line, "-") {
			options = append(options, strings.TrimRight(line, " \t"))
		}
	}
	return options
}

// disable turns the options that a predicate selects into comments, where they stand.
func (f *optionsFile) disable(selects func(option string) bool) {
	for i, line := range f.lines {
		if strings.HasPrefix(line, "-") && selects(strings.TrimRight(line, " \t")) {
			f.lines[i] = "# overridden: " + line
		}
	}
}

// add appends options under a heading; nothing without options.
func (f *optionsFile) add(heading string, options []string) {
	if len(options) == 0 {
		return
	}
	f.lines = append(f.lines, "", "# "+heading)
	f.lines = append(f.lines, options...)
}

func (f *optionsFile) bytes() []byte {
	return []byte(strings.Join(f.lines, "\n") + "\n")
}

// lastOfEach keeps, of options with the same key, the last one, in the place of the first.
func lastOfEach(options []string) []string {
	at := map[string]int{}
	var kept []string
	for _, option := range options {
		key := optionKey(option)
		if i, found := at[key]; found {
			kept[i] = option
			continue
		}
		at[key] = len(kept)
		kept = append(kept, option)
	}
	return kept
}

// keysOf are the keys of options.
func keysOf(options []string) map[string]bool {
	keys := make(map[string]bool, len(options))
	for _, option := range options {
		keys[optionKey(option)] = true
	}
	return keys
}

// withoutKeys are the options that do not set what others set.
func withoutKeys(options, others []string) []string {
	taken := keysOf(others)
	var kept []string
	for _, option := range options {
		if !taken[optionKey(option)] {
			kept = append(kept, option)
		}
	}
	return kept
}
