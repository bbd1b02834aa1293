package settings

import (
	"encoding/json"
	"math"
	"math/big"
)

// oldUnits are the units of numbers under old names, by Cassandra's converter. Converters that are
// missing here change more than the notation.
var oldUnits = map[string]struct {
	kind Type
	unit string
}{
	"MILLIS_DURATION_LONG":           {Duration, "ms"},
	"MILLIS_DURATION_INT":            {Duration, "ms"},
	"SECONDS_DURATION":               {Duration, "s"},
	"MEBIBYTES_DATA_STORAGE_LONG":    {Size, "MiB"},
	"MEBIBYTES_DATA_STORAGE_INT":     {Size, "MiB"},
	"KIBIBYTES_DATASTORAGE":          {Size, "KiB"},
	"BYTES_DATASTORAGE":              {Size, "B"},
	"MEBIBYTES_PER_SECOND_DATA_RATE": {Rate, "MiB/s"},
}

// Quantity is the amount of a duration in nanoseconds, of a size in bytes, or of a rate in bytes
// per second, also under an old name whose numbers have an implied unit. It is not known for other
// settings and for values that Cassandra would not read as such.
func (s *Setting) Quantity(raw []byte) (amount int64, known bool) {
	value, err := Decode(raw)
	if err != nil {
		return 0, false
	}
	if old, converted := oldUnits[s.Converter]; converted {
		number, ok := value.(json.Number)
		if !ok {
			return 0, false
		}
		return times(number.String(), old.kind, old.unit)
	}
	text, ok := value.(string)
	units, _ := unitsOf(s.Type)
	if !ok || units == nil {
		return 0, false
	}
	match := quantity.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	return times(match[1], s.Type, match[2])
}

// In returns an amount, as Quantity gives it, counted in a unit; false if it is no whole number of
// them.
func In(amount int64, kind Type, unit string) (int64, bool) {
	units, _ := unitsOf(kind)
	factor := factorOf(units, unit)
	if factor == 0 || amount%factor != 0 {
		return 0, false
	}
	return amount / factor, true
}

func times(digits string, kind Type, unit string) (int64, bool) {
	units, _ := unitsOf(kind)
	factor := factorOf(units, unit)
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok || factor == 0 || n.Sign() < 0 {
		return 0, false
	}
	n.Mul(n, big.NewInt(factor))
	if n.Cmp(big.NewInt(math.MaxInt64)) > 0 {
		return 0, false
	}
	return n.Int64(), true
}
