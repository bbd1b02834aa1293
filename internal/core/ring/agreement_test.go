package ring

import (
	"fmt"
	"testing"
)

func TestDisagreements(t *testing.T) {
	a := Member{"a", "NORMAL", []Token{1, 2}}
	b := Member{"b", "NORMAL", []Token{3}}
	tests := []struct {
		name  string
		views []View
		want  string
	}{
		{"no view", nil, "[]"},
		{"one view", []View{{[]string{"a"}, []Member{a}}}, "[]"},
		{"an empty view alone", []View{{[]string{"a"}, nil}}, "[]"},
		{"the same", []View{{[]string{"a"}, []Member{a, b}},
			{[]string{"b"}, []Member{b, {"a", "NORMAL", []Token{2, 1}}}}}, "[]"},
		{"a member is missing", []View{{[]string{"x"}, []Member{a, b}}, {[]string{"y"}, []Member{a}},
			{[]string{"z"}, []Member{a, b}}}, "[y sees nothing of b, most see NORMAL]"},
		{"a member too many", []View{{[]string{"x"}, []Member{a, b}}, {[]string{"y"}, []Member{a}},
			{[]string{"z"}, []Member{a}}}, "[x sees NORMAL of b, most see nothing]"},
		{"another status", []View{{[]string{"x"}, []Member{a, {"b", "LEAVING", []Token{3}}}},
			{[]string{"y"}, []Member{a, b}}, {[]string{"z"}, []Member{a, b}}},
			"[x sees LEAVING of b, most see NORMAL]"},
		{"another status and tokens", []View{{[]string{"x"}, []Member{{"b", "LEFT", nil}}},
			{[]string{"y"}, []Member{b}}, {[]string{"z"}, []Member{b}}}, "[x sees LEFT of b, most see NORMAL]"},
		{"other tokens", []View{{[]string{"x"}, []Member{{"a", "NORMAL", []Token{2, 5}}}}, {[]string{"y"}, []Member{a}},
			{[]string{"z"}, []Member{a}}}, "[x sees NORMAL with tokens 2,5 of a, most see NORMAL with tokens 1,2]"},
		{"no tokens", []View{{[]string{"x"}, []Member{{"a", "NORMAL", nil}}}, {[]string{"y"}, []Member{a}},
			{[]string{"z"}, []Member{a}}}, "[x sees NORMAL without tokens of a, most see NORMAL with tokens 1,2]"},
		{"a tie goes to the first observer", []View{{[]string{"y"}, []Member{a}}, {[]string{"x"}, []Member{b}}},
			"[y sees NORMAL of a, most see nothing y sees nothing of b, most see NORMAL]"},
		{"two endpoints with one host id", []View{{[]string{"x"}, []Member{b, {"b", "LEFT", []Token{4}}}},
			{[]string{"y"}, []Member{b}}, {[]string{"z"}, []Member{b}}},
			"[x sees LEFT and NORMAL of b, most see NORMAL]"},
		{"the same two in another order", []View{{[]string{"x"}, []Member{b, {"b", "LEFT", []Token{4}}}},
			{[]string{"y"}, []Member{{"b", "LEFT", []Token{4}}, b}}}, "[]"},
		{"one sees nobody", []View{{[]string{"x"}, nil}, {[]string{"y"}, []Member{a}}, {[]string{"z"}, []Member{a}}},
			"[x sees nothing of a, most see NORMAL]"},
		{"most see nobody", []View{{[]string{"x"}, nil}, {[]string{"y"}, []Member{a}}, {[]string{"z"}, nil}},
			"[y sees NORMAL of a, most see nothing]"},
		{"several see the same", []View{{[]string{"w", "z"}, []Member{a}}, {[]string{"v", "y", "x"}, []Member{a, b}}},
			"[w sees nothing of b, most see NORMAL z sees nothing of b, most see NORMAL]"},
		{
			"several views come to the same", []View{{[]string{"v", "w"}, []Member{a}}, {[]string{"z"}, []Member{a, b}},
				{[]string{"x", "y"}, []Member{b, a}}},
			"[v sees nothing of b, most see NORMAL w sees nothing of b, most see NORMAL]",
		},
		{"a tie of several", []View{{[]string{"z", "w"}, []Member{b}}, {[]string{"y", "x"}, []Member{a, b}}},
			"[x sees NORMAL of a, most see nothing y sees NORMAL of a, most see nothing]"},
		{
			"two endpoints with other tokens", []View{{[]string{"x"}, []Member{b, {"b", "NORMAL", []Token{10, 4}}}},
				{[]string{"y", "z"}, []Member{b, {"b", "NORMAL", []Token{5}}}}},
			"[x sees NORMAL and NORMAL with tokens 3 and 4,10 of b, most see NORMAL and NORMAL with tokens 3 and 5]",
		},
		{"two differ, sorted", []View{{[]string{"z"}, []Member{a}}, {[]string{"y"}, nil},
			{[]string{"x"}, []Member{a, b}}, {[]string{"w"}, []Member{a, b}}, {[]string{"v"}, []Member{a, b}}},
			"[y sees nothing of a, most see NORMAL y sees nothing of b, most see NORMAL z sees nothing of b, most " +
				"see NORMAL]"},
	}
	for _, test := range tests {
		if got := fmt.Sprint(Disagreements(test.views)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}
