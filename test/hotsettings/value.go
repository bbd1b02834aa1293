package hotsettings

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Form is how a setting is written in cassandra.yaml.
type Form string

// Forms of settings. Quantities are compared and written as whole numbers of milliseconds, bytes,
// or bytes per second.
const (
	FormInteger  Form = "integer"
	FormNumber   Form = "number"
	FormBoolean  Form = "boolean"
	FormText     Form = "text"
	FormDuration Form = "duration"  // 500ms, 10s, 3h
	FormSize     Form = "size"      // 16KiB, 10MiB
	FormRate     Form = "rate"      // 64MiB/s
	FormList     Form = "list"      // of words; order and case do not matter
	FormSizeText Form = "size text" // a size that the bean takes as text; null is off
)

// off is the canonical value of a setting that is null. Only thresholds that the bean takes as text
// can be set to it at run time; for others null means what Cassandra chooses when it starts.
const off = "null"

var (
	durationUnits = map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
	sizeUnits     = map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	rateUnits     = map[string]int64{"B/s": 1, "KiB/s": 1 << 10, "MiB/s": 1 << 20}
)

// canonical is Setting.Canonical.
func (f Form) canonical(value any) (string, error) {
	text, err := scalar(value)
	if f == FormList {
		text, err = list(value)
	}
	if err != nil {
		return "", err
	}
	if text == off && f != FormList || text == "" && f == FormSizeText {
		return off, nil
	}
	switch f {
	case FormInteger:
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", fmt.Errorf("%q is not a whole number", text)
		}
		return strconv.FormatInt(number, 10), nil
	case FormNumber:
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			return "", fmt.Errorf("%q is not a number", text)
		}
		return strconv.FormatFloat(number, 'g', -1, 64), nil
	case FormBoolean:
		if text != "true" && text != "false" {
			return "", fmt.Errorf("%q is neither true nor false", text)
		}
		return text, nil
	case FormDuration:
		return quantity(text, durationUnits, "500ms, 10s, 5m, 3h or 1d")
	case FormSize, FormSizeText:
		return quantity(text, sizeUnits, "100B, 16KiB, 10MiB or 1GiB")
	case FormRate:
		return quantity(text, rateUnits, "64MiB/s, 512KiB/s or 100B/s")
	default:
		return text, nil
	}
}

// Canonical turns a value of cassandra.yaml, as JSON or YAML decoding gives it, into the one text
// that stands for everything that means the same to Cassandra: quantities are whole numbers of
// milliseconds, bytes, or bytes per second, lists are sorted words.
func (s Setting) Canonical(value any) (string, error) { return s.Form.canonical(value) }

// InYAML writes a canonical value as cassandra.yaml takes it.
func (s Setting) InYAML(canonical string) any {
	switch {
	case canonical == off && s.Form != FormList:
		return nil
	case s.Form == FormDuration:
		return canonical + "ms"
	case s.Form == FormSize, s.Form == FormSizeText:
		return canonical + "B"
	case s.Form == FormRate:
		return canonical + "B/s"
	default:
		return canonical
	}
}

// scalar writes one value without loss.
func scalar(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return off, nil
	case string:
		return strings.TrimSpace(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case json.Number:
		return v.String(), nil
	default:
		return "", fmt.Errorf("%v is not a single value", value)
	}
}

// list writes a list as its sorted words in lower case. Null is the empty list, and text is a list
// separated by commas.
func list(value any) (string, error) {
	var words []string
	switch v := value.(type) {
	case nil:
	case string:
		words = strings.Split(v, ",")
	case []string:
		words = slices.Clone(v)
	case []any:
		for _, element := range v {
			word, ok := element.(string)
			if !ok {
				return "", fmt.Errorf("%v in the list is not a word", element)
			}
			words = append(words, word)
		}
	default:
		return "", fmt.Errorf("%v is not a list of words", value)
	}
	for i, word := range words {
		words[i] = strings.ToLower(strings.TrimSpace(word))
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ","), nil
}

// quantity reads a whole number with a unit and gives it in the smallest unit.
func quantity(text string, units map[string]int64, allowed string) (string, error) {
	digits := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 1 {
		return "", fmt.Errorf("%q is not a whole number with a unit, such as %s", text, allowed)
	}
	factor, known := units[strings.TrimSpace(text[digits:])]
	number, err := strconv.ParseInt(text[:digits], 10, 64)
	if !known || err != nil || number > math.MaxInt64/factor {
		return "", fmt.Errorf("%q is not a whole number with a unit, such as %s", text, allowed)
	}
	return strconv.FormatInt(number*factor, 10), nil
}

// toBean turns a canonical value into what the bean takes, whose unit is so many of the smallest
// unit.
func (f Form) toBean(canonical string, unit int64) (any, error) {
	if canonical == off && f != FormSizeText {
		return nil, errors.New("null stands for what Cassandra chooses when it starts")
	}
	switch f {
	case FormBoolean:
		return canonical == "true", nil
	case FormNumber:
		return strconv.ParseFloat(canonical, 64)
	case FormText, FormList:
		return canonical, nil
	case FormSizeText:
		if canonical == off {
			return nil, nil
		}
		return canonical + "B", nil
	default:
		number, err := strconv.ParseInt(canonical, 10, 64)
		if err != nil {
			return nil, err
		}
		if number%unit != 0 {
			return nil, fmt.Errorf("%s: at run time only a multiple of %d can be set (in milliseconds, bytes, or "+
				"bytes per second)", canonical, unit)
		}
		return number / unit, nil
	}
}

// fromBean turns what the bean gives into the canonical value.
func (f Form) fromBean(raw json.RawMessage, unit int64) (string, error) {
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("decode %s: %w", raw, err)
	}
	switch f {
	case FormInteger, FormDuration, FormSize, FormRate:
		number, ok := value.(json.Number)
		if !ok {
			return "", fmt.Errorf("%s is not a number", raw)
		}
		// Exact rates are read as floating point: 0.5 MiB/s.
		float, err := number.Float64()
		if err != nil {
			return "", fmt.Errorf("decode %s: %w", raw, err)
		}
		if float < 0 && f != FormInteger {
			// How beans show a quantity that is null.
			return off, nil
		}
		if whole, err := number.Int64(); err == nil && whole <= math.MaxInt64/unit {
			return strconv.FormatInt(whole*unit, 10), nil
		}
		return strconv.FormatFloat(math.Round(float*float64(unit)), 'f', -1, 64), nil
	default:
		return f.canonical(value)
	}
}
