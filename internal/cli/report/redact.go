package report

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// redacted stands where a secret was.
const redacted = "REDACTED"

// words that name a secret, as part of the name of a field, an option or a variable.
const words = `pass(?:word|wd|phrase)|pwd|secret|credential|private[_-]?key|api[_-]?key|access[_-]?key|` +
	`authorization|token`

var (
	secretName = regexp.MustCompile(`(?i)` + words + `|(?:^|[_.-])pass(?:$|[_.-])|^auth$`)
	// harmlessName is of a field that says where a secret is, and not what it is.
	harmlessName = regexp.MustCompile(`(?:[nN]ame|Ref|_file|File|Path|Policy|Seconds)$`)
	// ringToken is a token of the ring, or several.
	ringToken = regexp.MustCompile(`^[-0-9, ]*$`)

	// assigned is a name with its value, as in options, properties, JSON, YAML, CQL and headers.
	assigned = regexp.MustCompile(`(?i)([\w.-]*(?:` + words + `|[_.-]pass)[\w.-]*\\?["']?\s*[:=]\s*)` +
		`(?:(?:Bearer|Basic|Token)\s+)?(\\?"[^"\n]*"|'[^'\n]*'|[^\s"',;&\\]+)`)
	identified = regexp.MustCompile(`(?i)(IDENTIFIED\s+BY\s+)'[^'\n]*'`)
	// whole patterns are secrets wherever they are.
	whole = regexp.MustCompile(strings.Join([]string{
		`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`,
		`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`, // tokens of service accounts, of OIDC
		`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
		`\bgh[pousr]_[A-Za-z0-9]{30,}`,
		`\bxox[a-z]-[A-Za-z0-9-]{10,}`,
		`\bAIza[0-9A-Za-z_-]{35}`,
		`\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}`,
	}, "|"))
	scheme   = regexp.MustCompile(`(?i)\b(Bearer|Basic)\s+[A-Za-z0-9+/=._~-]{8,}`)
	userInfo = regexp.MustCompile(`(://)[^/\s:@"']*:[^/\s@"']+@`)
	random   = regexp.MustCompile(`[A-Za-z0-9+/_]{32,}={0,2}`)
)

// text is a text without what looks like a secret.
func text(s string) string {
	s = whole.ReplaceAllString(s, redacted)
	s = userInfo.ReplaceAllString(s, "${1}"+redacted+"@")
	s = identified.ReplaceAllString(s, "${1}"+redacted)
	s = assigned.ReplaceAllStringFunc(s, func(found string) string {
		parts := assigned.FindStringSubmatch(found)
		if ringToken.MatchString(strings.Trim(parts[2], `\"'`)) {
			return found
		}
		return parts[1] + redacted
	})
	s = scheme.ReplaceAllString(s, "$1 "+redacted)
	return random.ReplaceAllStringFunc(s, func(found string) string {
		if entropy(found) >= leastEntropy {
			return redacted
		}
		return found
	})
}

// leastEntropy of a run of characters that counts as random, in bits for each: 32 random characters
// of base64 have about 4.6, paths, names of classes and hexadecimal digits less than 4.2.
const leastEntropy = 4.35

func entropy(s string) float64 {
	counts := map[rune]int{}
	for _, r := range s {
		counts[r]++
	}
	sum := 0.0
	for _, n := range counts {
		p := float64(n) / float64(len(s))
		sum -= p * math.Log2(p)
	}
	return sum
}

// object is a decoded object without what looks like a secret: by the name of a field or of a
// variable, or by itself.
func object(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, field := range value {
			if !slices.Contains(dropped, name) {
				out[name] = named(name, field)
			}
		}
		// A variable, an argument or a header.
		if name, is := value["name"].(string); is && secretName.MatchString(name) {
			if _, literal := value["value"].(string); literal {
				out["value"] = redacted
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(value))
		for _, item := range value {
			out = append(out, object(item))
		}
		return out
	case string:
		return text(value)
	default:
		return value
	}
}

// dropped fields and annotations: what was applied before is a copy of the object in one text, and
// who has set which field tells nothing that is looked for.
var dropped = []string{"managedFields", "kubectl.kubernetes.io/last-applied-configuration"}

// named is a field of an object.
func named(name string, field any) any {
	if literal, is := field.(string); is && literal != "" && secretName.MatchString(name) &&
		!harmlessName.MatchString(name) && !ringToken.MatchString(literal) {
		return redacted
	}
	return object(field)
}
