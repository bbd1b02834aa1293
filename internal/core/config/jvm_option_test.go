package config

import (
	"slices"
	"testing"
)

func TestOptionKey(t *testing.T) {
	for option, want := range map[string]string{
		"-XX:+UseG1GC":               "-XX:UseG1GC",
		"-XX:-UseG1GC":               "-XX:UseG1GC",
		"-XX:MaxGCPauseMillis=300":   "-XX:MaxGCPauseMillis",
		"-Dcassandra.x=1":            "-Dcassandra.x",
		"-Dcassandra.x":              "-Dcassandra.x",
		"-Xmx4G":                     "-Xmx",
		"-Xss256k":                   "-Xss",
		"-Xlog:gc":                   "-Xlog:gc",
		"-ea":                        "-ea",
		"-da":                        "-ea",
		"-disableassertions":         "-ea",
		"-da:net.openhft...":         "-ea:net.openhft...",
		"-ea:net.openhft...":         "-ea:net.openhft...",
		"--add-opens=a/b=ALL":        "--add-opens=a/b=ALL",
		"--add-opens a/b=ALL":        "--add-opens a/b=ALL",
		"-javaagent:/a.jar=b":        "-javaagent:/a.jar=b",
		"-eager":                     "-eager",
		"-XX:OnOutOfMemoryError=x y": "-XX:OnOutOfMemoryError",
	} {
		if got := optionKey(option); got != want {
			t.Errorf("optionKey(%s) = %s, want %s", option, got, want)
		}
	}
}

func TestLastOfEach(t *testing.T) {
	got := lastOfEach([]string{"-Xss1m", "-Da=1", "-XX:+UseNUMA", "-Da=2", "-Xss2m"})
	if want := []string{"-Xss2m", "-Da=2", "-XX:+UseNUMA"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOtherCollector(t *testing.T) {
	for option, want := range map[string]bool{
		"-XX:+UseG1GC":                  true,
		"-XX:G1HeapRegionSize=16m":      true,
		"-XX:+CMSParallelRemarkEnabled": true,
		"-XX:+UseZGC":                   false,
		"-XX:ZCollectionInterval=5":     false,
		"-XX:MaxTenuringThreshold=1":    false,
	} {
		if got := ofOtherCollector(option, "-XX:UseZGC"); got != want {
			t.Errorf("%s is of another collector than ZGC: %v, want %v", option, got, want)
		}
		if ofOtherCollector(option, "") {
			t.Errorf("%s is of another collector than none", option)
		}
	}
	if got := collectorOf([]string{"-XX:-UseG1GC", "-XX:MaxGCPauseMillis=1"}); got != "" {
		t.Errorf("a collector that is only turned off counts as chosen: %s", got)
	}
}

func TestOwnedOption(t *testing.T) {
	for option, want := range map[string]bool{
		"-Xmx4G": true, "-Xmn1G": false, "-cp": true, "-classpath": true, "-class": false, "--class-path=/x": true,
		"@file": true,
		"-Dcassandra.replace_address_first_boot=x": true, "-Dcassandra.maxHintTTL=1": false,
		"-XX:MaxRAMPercentage=50": true,
		"-XX:+UseZGC":             false, "-Djava.net.preferIPv4Stack=false": true, "-Dx=y": false, "-h": true,
		"-help": true,
	} {
		if _, owned := ownedOption(option); owned != want {
			t.Errorf("%s is owned: %v, want %v", option, owned, want)
		}
	}
}
