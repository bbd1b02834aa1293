package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
)

func validateJVM(c *v1alpha1.NodeConfiguration, memoryLimit int64) Problems {
	var problems Problems
	var options []string
	if c.JVM != nil {
		options = c.JVM.Options
	}
	anyJava := slices.Contains(options, "-XX:+IgnoreUnrecognizedVMOptions")
	for i, option := range options {
		message := validateOption(option)
		if c.Authentication != "" && strings.HasPrefix(option, "-D"+setupDelay) {
			message = option + " is set by Helenus: the superuser is made as security.authentication says"
		}
		if message == "" && !anyJava {
			message = validateJava(option, c.Version)
		}
		if message != "" {
			problems = append(problems, Problem{fmt.Sprintf("jvm.options[%d]", i), message})
		}
	}
	if message := validateCollectors(options, c.Version); message != "" {
		problems = append(problems, Problem{"jvm.options", message})
	}
	return append(problems, validateMemory(c.JVM, memoryLimit)...)
}

// validateOption says what is wrong with one option. bin/cassandra puts options into one string
// that the shell takes apart at white space and without regard to quotes.
func validateOption(option string) string {
	if instead, owned := ownedOption(option); owned {
		return fmt.Sprintf("%s is set by Helenus: %s", option, instead)
	}
	switch {
	case !strings.HasPrefix(option, "-") || len(option) < 2:
		return fmt.Sprintf("%q is no option of the JVM: want one that begins with a dash", option)
	case strings.ContainsAny(option, " \t\r\n"):
		return fmt.Sprintf("%q contains white space: write each option on its own, and one with a value as "+
			"--name=value", option)
	case strings.ContainsAny(option, "\"'`\\$"):
		return fmt.Sprintf("%q contains a quote, a backslash or a dollar sign, which the start script of Cassandra "+
			"does not pass on", option)
	}
	return ""
}

// validateCollectors refuses two garbage collectors, and a fixed young generation with G1:
// cassandra-env.sh ends with an error then.
func validateCollectors(options []string, version string) string {
	chosen := map[string]string{}
	young := ""
	for _, option := range options {
		key := optionKey(option)
		if _, isCollector := collectors[key]; isCollector && strings.HasPrefix(option, "-XX:+") {
			chosen[key] = option
		}
		if key == "-Xmn" {
			young = option
		}
	}
	if len(chosen) > 1 {
		names := make([]string, 0, len(chosen))
		for _, key := range slices.Sorted(maps.Keys(chosen)) {
			names = append(names, chosen[key])
		}
		return strings.Join(names, " and ") + " are two garbage collectors: choose one"
	}
	_, g1 := chosen["-XX:UseG1GC"]
	// The image of 5.0 and later chooses G1 itself.
	if young != "" && (g1 || (len(chosen) == 0 && !strings.HasPrefix(version, "4."))) {
		return young + " cannot be set with the G1 collector, which sizes the young generation itself: remove it or " +
			"choose another collector"
	}
	return ""
}

var directMemory = regexp.MustCompile(`^-XX:MaxDirectMemorySize=([0-9]+)([kKmMgGtT]?)$`)

func validateMemory(jvm *v1alpha1.JVM, limit int64) Problems {
	memory, err := MemoryOf(jvm, limit)
	if err != nil {
		return Problems{{"jvm.heap", err.Error()}}
	}
	if limit == 0 {
		return nil
	}
	if jvm != nil {
		for i, option := range jvm.Options {
			if optionKey(option) != "-XX:MaxDirectMemorySize" {
				continue
			}
			match := directMemory.FindStringSubmatch(option)
			if match == nil {
				return Problems{{fmt.Sprintf("jvm.options[%d]", i),
					option + ": want a size such as -XX:MaxDirectMemorySize=2G"}}
			}
			amount, err := strconv.ParseInt(match[1], 10, 64)
			shift := map[string]uint{"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[strings.ToLower(match[2])]
			if err != nil || amount > limit>>shift {
				return Problems{{fmt.Sprintf("jvm.options[%d]", i),
					fmt.Sprintf("%s is more than the memory limit of %d MiB", option, limit/mebibyte)}}
			}
			memory.Direct = amount << shift
		}
	}
	if memory.Heap+memory.Direct > limit {
		return Problems{{"jvm.heap", fmt.Sprintf(
			"a heap of %d MiB and %d MiB of direct memory are more than the memory limit of %d MiB: lower the heap, "+
				"raise resources.limits.memory, or set -XX:MaxDirectMemorySize in jvm.options",
			memory.Heap/mebibyte, memory.Direct/mebibyte, limit/mebibyte)}}
	}
	return nil
}
