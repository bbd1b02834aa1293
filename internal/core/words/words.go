package words

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Plural is a number with its noun: "1 node", "2 nodes".
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// List names the first few of many things: "a, b and 3 others".
func List[T any](items []T, most int) string {
	var words []string
	for i, item := range items {
		if i == most {
			return strings.Join(words, ", ") + " and " + Plural(len(items)-most, "other")
		}
		words = append(words, fmt.Sprint(item))
	}
	return strings.Join(words, ", ")
}

// Ordinal is a number that counts: "first", "4th".
func Ordinal(n int) string {
	if words := []string{"first", "second", "third"}; n >= 1 && n <= len(words) {
		return words[n-1]
	}
	return fmt.Sprintf("%dth", n)
}

// Shorten keeps a text within a number of bytes, and at whole characters.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
