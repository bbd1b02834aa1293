package versions

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct{ in, module, staging, err string }{
		{in: "1.35.4", module: "v1.35.4", staging: "v0.35.4"},
		{in: "v1.36.0", module: "v1.36.0", staging: "v0.36.0"},
		{in: DefaultKubernetes, module: "v" + DefaultKubernetes, staging: "v0" + DefaultKubernetes[1:]},
		{in: "1.35", err: "want MAJOR.MINOR.PATCH"},
		{in: "1.35.x", err: `"x" is not a number`},
		{in: "1.35.-1", err: `"-1" is not a number`},
		{in: "1.21.0", err: "1.30 and newer"},
		{in: "2.0.0", err: "1.30 and newer"},
		{in: "", err: "want MAJOR.MINOR.PATCH"},
	} {
		k, err := Parse(tc.in)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("Parse(%q): error %v, want one with %q", tc.in, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("Parse(%q): %v", tc.in, err)
			continue
		}
		if k.Module() != tc.module || k.Staging() != tc.staging {
			t.Errorf("Parse(%q) = %s, %s, want %s, %s", tc.in, k.Module(), k.Staging(), tc.module, tc.staging)
		}
	}
}
