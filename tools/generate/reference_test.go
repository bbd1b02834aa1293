package main

import (
	"bytes"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
)

func TestTidy(t *testing.T) {
	in := "\n# A\n\n\n\n| `Stopped` | StateStopped – drained, as <cluster>-<node><br />says.<br /> |\n| `x` | Text – " +
		"of its own | `{  }` |\n| `None` | GCLogNone writes none.<br /> |"
	want := "# A\n\n| `Stopped` | drained, as &lt;cluster&gt;-&lt;node&gt; says. |\n| `x` | Text – of its own |  " +
		"|\n| `None` | writes none. |"
	if got := tidy(in); got != want {
		t.Errorf("tidy:\n%s\nwant\n%s", got, want)
	}
}

// TestOwnedTables: each key, option and variable that is refused can be looked up.
func TestOwnedTables(t *testing.T) {
	var out bytes.Buffer
	owned(&out)
	var names []string
	for _, setting := range v1alpha1.OwnedSettings {
		names = append(names, setting.Key)
	}
	for _, groups := range [][]v1alpha1.OwnedName{v1alpha1.OwnedJVMOptions, v1alpha1.OwnedVariables} {
		for _, group := range groups {
			names = append(names, group.Names...)
		}
	}
	for _, name := range names {
		if !strings.Contains(out.String(), "`"+name+"`") {
			t.Errorf("%s is not in the reference", name)
		}
	}
}
