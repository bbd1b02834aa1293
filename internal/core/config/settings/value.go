package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Problem is what is wrong with one value.
type Problem struct {
	// Path below the setting, "" for the value itself: .configurations.default or [0].
	Path string
	// Message says what was found and what is allowed.
	Message string
}

// unit is one unit of a duration, size or rate, as a multiple of the smallest one of its kind.
type unit struct {
	symbol string
	factor int64
}

// The notations of Cassandra 4.1 and later (config/DurationSpec, DataStorageSpec,
// DataRateSpec.java), smallest unit first.
var (
	durationUnits = []unit{
		{"ns", 1},
		{"us", 1_000},
		{"ms", 1_000_000},
		{"s", 1_000_000_000},
		{"m", 60_000_000_000},
		{"h", 3_600_000_000_000},
		{"d", 86_400_000_000_000},
	}
	sizeUnits = []unit{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}
	rateUnits = []unit{{"B/s", 1}, {"KiB/s", 1 << 10}, {"MiB/s", 1 << 20}}
	quantity  = regexp.MustCompile(`^([0-9]+)([A-Za-zµ/]+)$`)
)

// unitsOf are the units of a type, with the usual one; nil for types that are no quantity.
func unitsOf(t Type) (units []unit, usual string) {
	switch t {
	case Duration:
		return durationUnits, "s"
	case Size:
		return sizeUnits, "MiB"
	case Rate:
		return rateUnits, "MiB/s"
	default:
		return nil, ""
	}
}

// Check says what is wrong with a JSON value of the setting; nothing if Cassandra can read it.
func (s *Setting) Check(raw []byte) []Problem {
	value, err := Decode(raw)
	if err != nil {
		return []Problem{{Message: "is no JSON value: " + err.Error()}}
	}
	if s.Plain != "" && isPlainNumber(value) {
		return nil
	}
	if problems := check("", &s.Shape, value); len(problems) > 0 {
		return problems
	}
	return s.checkRange(value)
}

// Decode reads one JSON value, with numbers as they were written.
func Decode(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, fmt.Errorf("more than one value")
	}
	return value, nil
}

func isPlainNumber(value any) bool {
	text, ok := value.(string)
	if number, isNumber := value.(json.Number); isNumber {
		text, ok = number.String(), true
	}
	if !ok {
		return false
	}
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0
}

func check(path string, shape *Shape, value any) []Problem {
	switch shape.Type {
	case Boolean:
		if _, ok := value.(bool); !ok {
			return wrong(path, value, "true or false")
		}
	case Int:
		return checkInteger(path, value, math.MinInt32, math.MaxInt32)
	case Long:
		return checkInteger(path, value, math.MinInt64, math.MaxInt64)
	case Double:
		number, ok := value.(json.Number)
		if !ok {
			return wrong(path, value, "a number")
		}
		if _, err := number.Float64(); err != nil {
			return wrong(path, value, "a number of double precision")
		}
	case String:
		return checkString(path, value)
	case Enum:
		text, ok := value.(string)
		if !ok || !slices.Contains(shape.Values, text) {
			return wrong(path, value, "one of "+strings.Join(shape.Values, ", "))
		}
	case Duration, Size, Rate:
		return checkQuantity(path, shape, value)
	case List:
		return checkList(path, shape, value)
	case Map:
		return checkMap(path, shape, value)
	case Object:
		return checkObject(path, shape, value)
	case Any:
	}
	return nil
}

// checkString accepts what has one text only. A number or a boolean does not: 010 and yes would
// reach Cassandra as something else.
func checkString(path string, value any) []Problem {
	text, ok := value.(string)
	if !ok {
		return wrong(path, value, "a string (in quotes)")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' }) {
		return []Problem{{path, "contains a control character"}}
	}
	return nil
}

func checkInteger(path string, value any, least, most int64) []Problem {
	allowed := "a whole number"
	number, ok := value.(json.Number)
	if !ok {
		return wrong(path, value, allowed)
	}
	n, ok := new(big.Int).SetString(number.String(), 10)
	if !ok {
		return wrong(path, value, allowed)
	}
	if n.Cmp(big.NewInt(least)) < 0 || n.Cmp(big.NewInt(most)) > 0 {
		return wrong(path, value, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return nil
}

func checkQuantity(path string, shape *Shape, value any) []Problem {
	allowed := allowedQuantity(shape)
	text, ok := value.(string)
	if !ok {
		return wrong(path, value, allowed)
	}
	match := quantity.FindStringSubmatch(text)
	if match == nil {
		return wrong(path, value, allowed)
	}
	units, _ := unitsOf(shape.Type)
	given, smallest := factorOf(units, match[2]), factorOf(units, shape.Unit)
	if given == 0 || given < smallest {
		return wrong(path, value, allowed)
	}
	amount, ok := new(big.Int).SetString(match[1], 10)
	if !ok {
		return wrong(path, value, allowed)
	}
	// Cassandra keeps the value counted in its smallest unit, and refuses the largest number
	// itself.
	counted := new(big.Int).Div(amount.Mul(amount, big.NewInt(given)), big.NewInt(smallest))
	most := int64(math.MaxInt64)
	if shape.Bound == "int" {
		most = math.MaxInt32
	}
	if counted.Cmp(big.NewInt(most)) >= 0 {
		return wrong(path, value, fmt.Sprintf("less than %d%s", most, shape.Unit))
	}
	return nil
}

func allowedQuantity(shape *Shape) string {
	units, usual := unitsOf(shape.Type)
	smallest := factorOf(units, shape.Unit)
	if factorOf(units, usual) < smallest {
		usual = shape.Unit
	}
	var symbols []string
	for _, u := range units {
		if u.factor >= smallest {
			symbols = append(symbols, u.symbol)
		}
	}
	return fmt.Sprintf("a %s: a whole number followed by %s, such as 10%s", shape.Type, strings.Join(symbols, ", "),
		usual)
}

func factorOf(units []unit, symbol string) int64 {
	if symbol == "µs" {
		symbol = "us"
	}
	for _, u := range units {
		if u.symbol == symbol {
			return u.factor
		}
	}
	return 0
}

func checkList(path string, shape *Shape, value any) []Problem {
	list, ok := value.([]any)
	if !ok {
		return wrong(path, value, "a list")
	}
	var problems []Problem
	if shape.Element != nil {
		for i, element := range list {
			problems = append(problems, check(fmt.Sprintf("%s[%d]", path, i), shape.Element, element)...)
		}
	}
	return problems
}

func checkMap(path string, shape *Shape, value any) []Problem {
	mapping, ok := value.(map[string]any)
	if !ok {
		return wrong(path, value, "a mapping")
	}
	var problems []Problem
	if shape.Element != nil {
		for _, key := range slices.Sorted(maps.Keys(mapping)) {
			problems = append(problems, check(path+"."+key, shape.Element, mapping[key])...)
		}
	}
	return problems
}

func checkObject(path string, shape *Shape, value any) []Problem {
	if list, ok := value.([]any); ok && shape.Sequence {
		return checkSequence(path, shape, list)
	}
	if text, ok := value.(string); ok && shape.Scalar {
		return checkString(path, text)
	}
	if len(shape.Fields) == 0 {
		return nil
	}
	mapping, ok := value.(map[string]any)
	if !ok {
		return wrong(path, value, "a mapping with the keys "+fieldNames(shape))
	}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		at := slices.IndexFunc(shape.Fields, func(f Setting) bool { return f.Name == key })
		if at < 0 {
			problems = append(problems, Problem{path + "." + key, "is not known here; known are " + fieldNames(shape)})
			continue
		}
		if mapping[key] != nil {
			problems = append(problems, check(path+"."+key, &shape.Fields[at].Shape, mapping[key])...)
		}
	}
	return problems
}

// checkSequence checks the older way to write a class with parameters: a list with one mapping,
// whose parameters are again such a list.
func checkSequence(path string, shape *Shape, list []any) []Problem {
	if len(list) != 1 {
		return []Problem{{path, fmt.Sprintf("is a list of %d elements; want one mapping with the keys %s", len(list),
			fieldNames(shape))}}
	}
	mapping, ok := list[0].(map[string]any)
	if !ok {
		return wrong(path+"[0]", list[0], "a mapping with the keys "+fieldNames(shape))
	}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		if !slices.ContainsFunc(shape.Fields, func(f Setting) bool { return f.Name == key }) {
			problems = append(problems, Problem{path + "[0]." + key,
				"is not known here; known are " + fieldNames(shape)})
		}
	}
	return problems
}

func fieldNames(shape *Shape) string {
	var names []string
	for i := range shape.Fields {
		if shape.Fields[i].ReplacedBy == "" {
			names = append(names, shape.Fields[i].Name)
		}
	}
	return strings.Join(names, ", ")
}

func wrong(path string, value any, allowed string) []Problem {
	return []Problem{{path, fmt.Sprintf("is %s; want %s", describe(value), allowed)}}
}

// describe writes a value short enough for a message.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	case string:
		if len(v) > 60 {
			v = v[:60] + "…"
		}
		return strconv.Quote(v)
	default:
		return fmt.Sprint(v)
	}
}
