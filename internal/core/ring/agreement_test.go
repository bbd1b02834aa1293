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
		{"one view", []View{{"a", []Member{a}}}, "[]"},
		{"an empty view alone", []View{{"a", nil}}, "[]"},
		{"the same", []View{{"a", []Member{a, b}}, {"b", []Member{b, {"a", "NORMAL", []Token{2, 1}}}}}, "[]"},
		{"a member is missing", []View{{"x", []Member{a, b}}, {"y", []Member{a}}, {"z", []Member{a, b}}}, "[y sees nothing of b, most see NORMAL]"},
		{"a member too many", []View{{"x", []Member{a, b}}, {"y", []Member{a}}, {"z", []Member{a}}}, "[x sees NORMAL of b, most see nothing]"},
		{"another status", []View{{"x", []Member{a, {"b", "LEAVING", []Token{3}}}}, {"y", []Member{a, b}}, {"z", []Member{a, b}}}, "[x sees LEAVING of b, most see NORMAL]"},
		{"another status and tokens", []View{{"x", []Member{{"b", "LEFT", nil}}}, {"y", []Member{b}}, {"z", []Member{b}}}, "[x sees LEFT of b, most see NORMAL]"},
		{"other tokens", []View{{"x", []Member{{"a", "NORMAL", []Token{2, 5}}}}, {"y", []Member{a}}, {"z", []Member{a}}}, "[x sees NORMAL with tokens 2,5 of a, most see NORMAL with tokens 1,2]"},
		{"no tokens", []View{{"x", []Member{{"a", "NORMAL", nil}}}, {"y", []Member{a}}, {"z", []Member{a}}}, "[x sees NORMAL without tokens of a, most see NORMAL with tokens 1,2]"},
		{"a tie goes to the first observer", []View{{"y", []Member{a}}, {"x", []Member{b}}}, "[y sees NORMAL of a, most see nothing y sees nothing of b, most see NORMAL]"},
		{"two endpoints with one host id", []View{{"x", []Member{b, {"b", "LEFT", []Token{4}}}}, {"y", []Member{b}}, {"z", []Member{b}}}, "[x sees LEFT and NORMAL of b, most see NORMAL]"},
		{"the same two in another order", []View{{"x", []Member{b, {"b", "LEFT", []Token{4}}}}, {"y", []Member{{"b", "LEFT", []Token{4}}, b}}}, "[]"},
		{"one sees nobody", []View{{"x", nil}, {"y", []Member{a}}, {"z", []Member{a}}}, "[x sees nothing of a, most see NORMAL]"},
		{"most see nobody", []View{{"x", nil}, {"y", []Member{a}}, {"z", nil}}, "[y sees NORMAL of a, most see nothing]"},
		{"two differ, sorted", []View{{"z", []Member{a}}, {"y", nil}, {"x", []Member{a, b}}, {"w", []Member{a, b}}, {"v", []Member{a, b}}}, "[y sees nothing of a, most see NORMAL y sees nothing of b, most see NORMAL z sees nothing of b, most see NORMAL]"},
	}
	for _, test := range tests {
		if got := fmt.Sprint(Disagreements(test.views)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}
