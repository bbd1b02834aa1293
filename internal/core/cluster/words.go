package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// list names the first few of many things.
func list[T any](items []T, most int) string {
	var words []string
	for i, item := range items {
		if i == most {
			return strings.Join(words, ", ") + " and " + plural(len(items)-most, "other")
		}
		words = append(words, fmt.Sprint(item))
	}
	return strings.Join(words, ", ")
}

// ordinal is a number that counts, in words as far as they are short.
func ordinal(n int) string {
	if words := []string{"first", "second", "third"}; n >= 1 && n <= len(words) {
		return words[n-1]
	}
	return fmt.Sprintf("%dth", n)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func orElse[T ~string](value, fallback T) T {
	if value != "" {
		return value
	}
	return fallback
}

// attempt names the purpose of an intent that is tried again: the first try has the plain name.
func attempt(purpose string, n int) string {
	if n == 0 {
		return purpose
	}
	return fmt.Sprintf("%s-%d", purpose, n)
}
