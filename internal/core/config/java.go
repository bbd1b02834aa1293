package config

import (
	_ "embed"
	"fmt"
	"strings"

	"helenus.io/helenus/internal/core/config/settings"
)

//go:embed java.txt
var javaOptions string

// knownToJava is the only version of Java that knows an option, by the option's key, of those that
// not all do.
var knownToJava = func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(javaOptions) {
		if option, java, found := strings.Cut(strings.TrimSpace(line), " "); found && option != "#" {
			out["-XX:"+option] = java
		}
	}
	return out
}()

// javaOf a release is the version of Java in the official image.
func javaOf(version string) string {
	if settings.Older(version, "5.0") {
		return "11"
	}
	return "17"
}

// validateJava says that the Java of a release does not start with an option; empty if it does, for
// all that is known.
func validateJava(option, version string) string {
	java := javaOf(version)
	only, known := knownToJava[optionKey(option)]
	if !known || only == java {
		return ""
	}
	return fmt.Sprintf("%s is not known to Java %s, which Cassandra %s runs on, but to Java %s: remove it, or add "+
		"-XX:+IgnoreUnrecognizedVMOptions if your image has another Java", option, java, version, only)
}
