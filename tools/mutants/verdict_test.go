package main

import (
	"strings"
	"testing"
)

func made(n int, status string) []mutant {
	out := make([]mutant, n)
	for i := range out {
		out[i] = mutant{key: key{File: "core/x/x.go", Code: "a", Mutant: strings.Repeat("b", i+1) + status},
			line: i + 1, status: status}
	}
	return out
}

func TestTheVerdictHoldsMutantsAgainstTheList(t *testing.T) {
	lived, killed := made(1, statusLived), made(30, statusKilled)
	other := survivor{key: key{File: "core/other/x.go", Code: "a", Mutant: "b"}, Reason: "r"}
	for name, c := range map[string]struct {
		mutants []mutant
		allowed []survivor
		sound   bool
		says    string
	}{
		"all are killed": {killed, []survivor{other}, true, "100.0 % of 30 mutants killed"},
		"a survivor is listed": {append(lived, killed...), []survivor{{lived[0].key, "r"}}, true,
			"96.8 % of 31"},
		"a survivor is not listed": {append(lived, killed...), nil, false,
			"core/x/x.go:1: survived; it is not in the list"},
		"no test comes there": {append(made(1, statusNotCovered), killed...), nil, false,
			"no test seems to come here"},
		"a listed one is killed": {killed, []survivor{{killed[0].key, "r"}}, true, "a test kills it now"},
		"a listed one is gone": {killed, []survivor{{lived[0].key, "r"}}, false,
			"there is no such code any more"},
		"a hang is a kill": {append(made(1, statusHangs), killed...), nil, true,
			"100.0 % of 31 mutants killed (1 hang)"},
		"a timeout says nothing": {append(made(1, statusTimedOut), killed...), nil, false,
			"timed out beside others, which says nothing"},
		"a timeout kills no listed one": {append(made(1, statusTimedOut), killed...),
			[]survivor{{made(1, statusTimedOut)[0].key, "r"}}, true, "1 listed survivors, 0 unlisted"},
		"what does not compile is not": {append(made(30, statusNotViable), made(1, statusKilled)...), nil, true,
			"100.0 % of 1 mutants"},
		"nothing was tried": {nil, nil, false, "0.0 % of 0"},
		"too many are listed": {append(made(4, statusLived), killed...), []survivor{
			{made(4, statusLived)[0].key, "r"}, {made(4, statusLived)[1].key, "r"}, {made(4, statusLived)[2].key, "r"},
			{made(4, statusLived)[3].key, "r"},
		}, false, "at least 90 % must be killed"},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge("core/x", c.mutants, c.allowed)
			var out strings.Builder
			v.print(&out, 0)
			if v.sound() != c.sound || !strings.Contains(out.String(), c.says) {
				t.Errorf("sound %v, want %v and %q:\n%s", v.sound(), c.sound, c.says, &out)
			}
		})
	}
}

func TestTheListOfSurvivorsIsChecked(t *testing.T) {
	const entry = "- {file: a.go, func: f, code: a < b, mutant: a <= b, reason: they are never equal}\n"
	if got, err := parseSurvivors([]byte(entry)); err != nil || len(got) != 1 || got[0].Mutant != "a <= b" ||
		got[0].Reason != "they are never equal" {
		t.Errorf("got %+v, %v", got, err)
	}
	for says, content := range map[string]string{
		"there twice":                 entry + entry,
		"say in reason":               "- {file: a.go, code: a < b, mutant: a <= b}",
		"file, code and mutant":       "- {file: a.go, reason: r}",
		"unknown field":               "- {file: a.go, code: a < b, mutant: a <= b, reason: r, line: 3}",
		"read list of survivors: err": "x",
	} {
		if got, err := parseSurvivors([]byte(content)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %+v, %v; want an error that says %q", got, err, says)
		}
	}
}

func TestTheListedSurvivorsAreInTheCode(t *testing.T) {
	list, err := readSurvivors("survivors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		src, err := readSource("../..", s.File)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, line := range src.lines {
			found = found || strings.TrimSpace(string(line)) == s.Code
		}
		if !found {
			t.Errorf("%s: there is no line %q any more: what survives there now says make mutants", s.File, s.Code)
		}
	}
}
