package ring

import (
	"os"
	"strings"
	"testing"
)

// testdata/keys.golden is what Cassandra's own partitioner answered.
func TestTokensOfKeysEqualCassandra(t *testing.T) {
	text, err := os.ReadFile("testdata/keys.golden")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		key, err := ParseKey(fields[1:])
		if err != nil {
			t.Fatal(err)
		}
		if got := TokenOf(key).String(); got != fields[0] {
			t.Errorf("%q: token %s, want %s", fields[1:], got, fields[0])
		}
		asked++
	}
	if asked < 100 {
		t.Errorf("only %d answers in the golden file", asked)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	long := strings.Repeat("x", maxKeyBytes)
	for name, c := range map[string]struct {
		columns []string
		says    string
	}{
		"no column":             {nil, "it is empty, which no partition key may be"},
		"empty":                 {[]string{"text:"}, "it is empty, which no partition key may be"},
		"no type":               {[]string{"bob"}, `column 1 of the key: "bob": want TYPE:VALUE, with TYPE one of text, int`},
		"another type":          {[]string{"int:1", "float:1.5"}, `column 2 of the key: "float:1.5": want TYPE:VALUE`},
		"no number":             {[]string{"int:1e3"}, `"1e3" is no int: want a whole number from -2147483648 to 2147483647`},
		"a number too large":    {[]string{"int:2147483648"}, `"2147483648" is no int`},
		"a bigint too small":    {[]string{"bigint:-9223372036854775809"}, "is no bigint: want a whole number of 64 bits"},
		"a uuid cut off":        {[]string{"uuid:6ba7b810-9dad-11d1-80b4"}, "is no uuid: want 32 hexadecimal digits as 8-4-4-4-12"},
		"a uuid of other parts": {[]string{"uuid:6ba7b8109-dad-11d1-80b4-00c04fd430c8"}, "is no uuid"},
		"a uuid of letters":     {[]string{"uuid:6ba7b810-9dad-11d1-80b4-00c04fd430cg"}, "is no uuid"},
		"a blob without 0x":     {[]string{"blob:00"}, "is no blob: want 0x and pairs of hexadecimal digits"},
		"half a byte":           {[]string{"blob:0x0"}, "is no blob"},
		"no text":               {[]string{"text:\xff"}, "is no text: want valid UTF-8"},
		"a column too long":     {[]string{"text:" + long + "x", "int:1"}, "column 1 of the key: it has 65536 bytes, at most 65535"},
		"columns too long":      {[]string{"text:" + long, "int:1"}, "read the key: it has 65545 bytes, at most 65535"},
	} {
		if key, err := ParseKey(c.columns); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %x, error %v", name, key, err)
		}
	}
	if _, err := ParseKey([]string{"text:" + long}); err != nil {
		t.Error(err)
	}
}
