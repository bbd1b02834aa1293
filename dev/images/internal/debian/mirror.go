package debian

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// keyring is where the package debian-archive-keyring puts the keys that sign
// every Debian release.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// debianSuites are the code names that tell a Debian mirror from one of another
// distribution in this machine's sources.
var debianSuites = []string{"bullseye", "bookworm", "trixie", "forky", "sid", "stable", "oldstable", "oldoldstable",
	"testing", "unstable"}

// Mirror finds the address of a Debian mirror: HELENUS_DEBIAN_MIRROR, else the
// one this machine takes its packages from, else the default of debootstrap.
func Mirror() (string, error) {
	if mirror := os.Getenv("HELENUS_DEBIAN_MIRROR"); mirror != "" {
		return mirror, nil
	}
	lists, _ := filepath.Glob("/etc/apt/sources.list.d/*.list")
	for _, file := range append([]string{"/etc/apt/sources.list"}, lists...) {
		if text, err := os.ReadFile(file); err == nil {
			if mirror := mirrorInList(string(text)); mirror != "" {
				return mirror, nil
			}
		}
	}
	deb822, _ := filepath.Glob("/etc/apt/sources.list.d/*.sources")
	for _, file := range deb822 {
		if text, err := os.ReadFile(file); err == nil {
			if mirror := mirrorInSources(string(text)); mirror != "" {
				return mirror, nil
			}
		}
	}
	for _, file := range []string{"/usr/sbin/debootstrap", "/usr/share/debootstrap/functions"} {
		if text, err := os.ReadFile(file); err == nil {
			if match := debootstrapDefault.FindSubmatch(text); match != nil {
				return string(match[1]), nil
			}
		}
	}
	return "", errors.New("no Debian mirror found: this machine's apt sources name none and debootstrap is not " +
		"installed; install debootstrap or set HELENUS_DEBIAN_MIRROR to the address of a mirror")
}

var debootstrapDefault = regexp.MustCompile(`(?m)^\s*DEF_MIRROR=["']?(https?://[^"'\s]+)`)

// mirrorInList finds a Debian mirror in the one-line format of apt's sources.
func mirrorInList(text string) string {
	scanner := bufio.NewScanner(strings.NewReader(text))
	for scanner.Scan() {
		line, _, _ := strings.Cut(scanner.Text(), "#")
		if start, end := strings.Index(line, "["), strings.Index(line, "]"); start >= 0 && end > start {
			line = line[:start] + line[end+1:]
		}
		fields := strings.Fields(line)
		if len(fields) >= 4 && fields[0] == "deb" && slices.Contains(debianSuites, fields[2]) {
			return fields[1]
		}
	}
	return ""
}

// mirrorInSources finds a Debian mirror in the stanza format of apt's sources.
func mirrorInSources(text string) string {
	for stanza := range strings.SplitSeq(text, "\n\n") {
		fields := map[string][]string{}
		for line := range strings.SplitSeq(stanza, "\n") {
			key, value, ok := strings.Cut(line, ":")
			if ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, " ") {
				fields[strings.ToLower(key)] = strings.Fields(value)
			}
		}
		for _, suite := range fields["suites"] {
			if slices.Contains(debianSuites, suite) && slices.Contains(fields["components"], "main") &&
				len(fields["uris"]) > 0 {
				return fields["uris"][0]
			}
		}
	}
	return ""
}
