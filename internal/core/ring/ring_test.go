package ring

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// nodesOf reads nodes from words such as "a dc1/r1 0,100".
func nodesOf(t testing.TB, lines ...string) []Node {
	t.Helper()
	var nodes []Node
	for _, line := range lines {
		fields := strings.Fields(line)
		datacenter, rack, ok := strings.Cut(fields[1], "/")
		tokens, err := ParseTokens(fields[2])
		if !ok || err != nil {
			t.Fatalf("node %q: %v", line, err)
		}
		nodes = append(nodes, Node{ID: fields[0], Datacenter: datacenter, Rack: rack, Tokens: tokens})
	}
	return nodes
}

func ringOf(t testing.TB, lines ...string) *Ring {
	t.Helper()
	r, err := New(nodesOf(t, lines...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func replicationOf(t testing.TB, text string) Replication {
	t.Helper()
	replication, err := ParseReplication(text)
	if err != nil {
		t.Fatal(err)
	}
	return replication
}

// topology is NetworkTopologyStrategy with options such as "dc1=3, dc2=2".
func topology(t testing.TB, options string) Replication {
	t.Helper()
	return replicationOf(t, "NetworkTopologyStrategy {"+options+"}")
}

// drawNodes draws one to three datacenters of different shape, with tokens that
// are often near each other and near the ends of the ring.
func drawNodes(t *rapid.T) []Node {
	var nodes []Node
	used := map[Token]bool{}
	token := rapid.Custom(func(t *rapid.T) Token {
		return Token(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-40, 40),
			rapid.SampledFrom([]int64{int64(MinToken), int64(MaxToken), int64(MinToken) + 1})).Draw(t, "token"))
	})
	for dc := range rapid.IntRange(1, 3).Draw(t, "datacenters") {
		for rack := range rapid.IntRange(1, 4).Draw(t, "racks") {
			for n := range rapid.IntRange(1, 3).Draw(t, "nodes") {
				node := Node{ID: fmt.Sprintf("dc%d-r%d-%d", dc, rack, n), Datacenter: fmt.Sprint("dc", dc),
					Rack: fmt.Sprint("r", rack)}
				for range rapid.IntRange(1, 4).Draw(t, "tokens") {
					value := token.Draw(t, "token")
					for used[value] {
						value++
					}
					used[value] = true
					node.Tokens = append(node.Tokens, value)
				}
				nodes = append(nodes, node)
			}
		}
	}
	return rapid.Permutation(nodes).Draw(t, "order")
}

func drawRing(t *rapid.T) *Ring {
	r, err := New(drawNodes(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func drawReplication(t *rapid.T) Replication {
	var replication Replication
	var err error
	if rapid.IntRange(0, 4).Draw(t, "strategy") == 0 {
		replication, err = Simple(rapid.IntRange(1, 5).Draw(t, "factor"))
	} else {
		factors := map[string]int{}
		for dc := range 4 { // the fourth has never nodes
			factors[fmt.Sprint("dc", dc)] = rapid.IntRange(0, 5).Draw(t, "factor")
		}
		replication, err = NetworkTopology(factors)
	}
	if err != nil {
		t.Fatal(err)
	}
	return replication
}

func TestNewReportsEveryFault(t *testing.T) {
	_, err := New([]Node{
		{ID: "", Datacenter: "dc1", Rack: "r1", Tokens: []Token{1}},
		{ID: "a", Rack: "r1", Tokens: []Token{2}},
		{ID: "b", Datacenter: "dc1", Tokens: []Token{3}},
		{ID: "c", Datacenter: "dc1", Rack: "r1"},
		{ID: "d", Datacenter: "dc1", Rack: "r1", Tokens: []Token{3, 4, 4}},
		{ID: "d", Datacenter: "dc1", Rack: "r1", Tokens: []Token{5}},
	})
	want := `make ring: a node has no id
node a has no datacenter
node b has no rack
node c has no tokens
node d is there twice
token 3 belongs to both b and d
token 4 belongs to both d and d`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	var duplicate *DuplicateTokenError
	if !errors.As(err, &duplicate) || *duplicate != (DuplicateTokenError{3, [2]string{"b", "d"}}) {
		t.Errorf("duplicate is %+v", duplicate)
	}
}

func TestRing(t *testing.T) {
	nodes := nodesOf(t, "c dc2/r1 50,-7", "a dc1/r2 0,100", "b dc1/r1 -30")
	r, err := New(nodes)
	if err != nil {
		t.Fatal(err)
	}
	nodes[0].ID = "changed" // the ring keeps its own
	if got := fmt.Sprint(r.Tokens()); got != "[-30 -7 0 50 100]" {
		t.Errorf("tokens %s", got)
	}
	if r.Len() != 3 {
		t.Errorf("%d nodes", r.Len())
	}
	var ids []string
	for _, node := range r.Nodes() {
		ids = append(ids, node.ID)
	}
	if got := fmt.Sprint(ids); got != "[a b c]" {
		t.Errorf("nodes %s", got)
	}
	if got := fmt.Sprint(r.Datacenters(), r.Racks("dc1"), r.Racks("dc2"), r.Racks("dc3"),
		r.Racks("dc0")); got != "[dc1 dc2] [r1 r2] [r1] [] []" {
		t.Errorf("datacenters and racks %s", got)
	}
	for token, want := range map[Token]string{-31: "b", -30: "b", -29: "c", -7: "c", -6: "a", 0: "a", 1: "c", 50: "c",
		51: "a", 100: "a", 101: "b", MinToken: "b", MaxToken: "b"} {
		if got := r.Owner(token); got != want {
			t.Errorf("owner of %s is %s, want %s", token, got, want)
		}
	}
	if got := fmt.Sprint(r.PrimaryRanges("a"), r.PrimaryRanges("b"), r.PrimaryRanges("c"),
		r.PrimaryRanges("x")); got != "[(-7,0] (50,100]] [(100,-30]] [(-30,-7] (0,50]] []" {
		t.Errorf("primary ranges %s", got)
	}
	if node, ok := r.Node("c"); !ok || node.Datacenter != "dc2" {
		t.Errorf("node c: %v %t", node, ok)
	}
	if node, ok := r.Node("x"); ok || node.ID != "" {
		t.Errorf("node x: %v %t", node, ok)
	}
}

func TestEmptyRing(t *testing.T) {
	r := ringOf(t)
	if r.Owner(0) != "" || r.Len() != 0 || len(r.Tokens()) != 0 || len(r.Datacenters()) != 0 {
		t.Error("an empty ring has something")
	}
	for _, text := range []string{"SimpleStrategy {replication_factor=3}", "NetworkTopologyStrategy {dc1=3}",
		"EverywhereStrategy {}"} {
		if got := r.NaturalEndpoints(replicationOf(t, text), 5); len(got) != 0 {
			t.Errorf("%s: endpoints %v", text, got)
		}
		if got := r.EffectiveShares(replicationOf(t, text)); len(got) != 0 {
			t.Errorf("%s: shares %v", text, got)
		}
	}
}

func TestWithAndWithout(t *testing.T) {
	r := ringOf(t, "a dc1/r1 0", "b dc1/r2 10")
	bigger, err := r.With(nodesOf(t, "c dc2/r1 5")...)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(bigger.Tokens(), bigger.Datacenters()); got != "[0 5 10] [dc1 dc2]" {
		t.Errorf("with c: %s", got)
	}
	if got := fmt.Sprint(r.Tokens()); got != "[0 10]" {
		t.Errorf("the ring itself changed: %s", got)
	}
	if _, err := r.With(nodesOf(t, "c dc2/r1 10")...); err == nil ||
		!strings.Contains(err.Error(), "token 10 belongs to both b and c") {
		t.Errorf("with a token twice: %v", err)
	}
	smaller := bigger.Without("a", "x", "c")
	if got := fmt.Sprint(smaller.Tokens(), smaller.Racks("dc1"), bigger.Len()); got != "[10] [r2] 3" {
		t.Errorf("without a and c: %s", got)
	}
}

// A ring that grows or shrinks is the ring that is recreated of the same nodes, and fails for the
// same reason.
func TestWithAndWithoutAreRingsMadeAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRing(t)
		var joining []Node
		for i := range rapid.IntRange(0, 3).Draw(t, "joining") {
			node := Node{
				ID: rapid.SampledFrom([]string{"", "0", "joiner", fmt.Sprint("z", i), r.nodes[0].ID}).Draw(t,
					"id"),
				Datacenter: rapid.SampledFrom([]string{"", "dc1", "dc9"}).Draw(t, "datacenter"), Rack: "r9",
			}
			for range rapid.IntRange(0, 3).Draw(t, "tokens") {
				node.Tokens = append(node.Tokens, rapid.OneOf(rapid.SampledFrom(r.tokens),
					rapid.Custom(func(t *rapid.T) Token { return Token(rapid.Int64().Draw(t, "new")) })).Draw(t,
					"token"))
			}
			joining = append(joining, node)
		}
		got, err := r.With(joining...)
		want, wantErr := New(slices.Concat(r.nodes, joining))
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
			t.Fatalf("with %v: %+v, %v; want %+v, %v", joining, got, err, want, wantErr)
		}
		leaving := rapid.SliceOf(rapid.SampledFrom([]string{r.nodes[0].ID, r.nodes[len(r.nodes)-1].ID,
			"stranger"})).Draw(t, "leaving")
		rest, err := New(slices.DeleteFunc(slices.Clone(r.nodes),
			func(n Node) bool { return slices.Contains(leaving, n.ID) }))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Without(leaving...); !reflect.DeepEqual(got.Nodes(), rest.Nodes()) ||
			fmt.Sprint(got) != fmt.Sprint(rest) {
			t.Fatalf("without %v: %+v, want %+v", leaving, got, rest)
		}
	})
}

// The primary ranges of all nodes cover the ring once.
func TestPrimaryRangesCoverTheRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRing(t)
		token := Token(rapid.Int64().Draw(t, "token"))
		holders := 0
		total := 0.0
		for _, node := range r.Nodes() {
			for _, part := range r.PrimaryRanges(node.ID) {
				total += part.Size()
				if part.Contains(token) {
					holders++
					if r.Owner(token) != node.ID {
						t.Fatalf("%s holds %s, but its owner is %s", node.ID, token, r.Owner(token))
					}
				}
			}
		}
		if holders != 1 || total < 0.999999 || total > 1.000001 {
			t.Fatalf("%d holders of %s, all ranges together %f of the ring", holders, token, total)
		}
	})
}

func TestToken(t *testing.T) {
	for text, want := range map[string]Token{"0": 0, "-9223372036854775808": MinToken, "9223372036854775807": MaxToken,
		"+12": 12} {
		if got, err := ParseToken(text); got != want || err != nil {
			t.Errorf("parse %q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "9223372036854775808", " 1", "1.5", "0x10", "1_0"} {
		if _, err := ParseToken(text); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("parse token %q: want a decimal integer", text)) {
			t.Errorf("parse %q: %v", text, err)
		}
	}
	tokens, err := ParseTokens(" 1, -2 ,3")
	if err != nil || !slices.Equal(tokens, []Token{1, -2, 3}) {
		t.Errorf("list: %v, %v", tokens, err)
	}
	if got := FormatTokens(tokens); got != "1,-2,3" {
		t.Errorf("formatted %q", got)
	}
	if got := FormatTokens(nil); got != "" {
		t.Errorf("no tokens formatted %q", got)
	}
	for _, text := range []string{"", "1,", "1,,2", "1;2"} {
		if tokens, err := ParseTokens(text); err == nil {
			t.Errorf("list %q gives %v", text, tokens)
		}
	}
}

func TestRange(t *testing.T) {
	tests := []struct {
		r       Range
		in, out []Token
		size    float64
		full    bool
	}{
		{Range{0, 10}, []Token{1, 10}, []Token{0, 11, MinToken, MaxToken, -1}, 10.0 / (1 << 63) / 2, false},
		{Range{10, 0}, []Token{11, MaxToken, MinToken, 0}, []Token{10, 1}, 1, false},
		{Range{MinToken, 0}, []Token{0, -1, MinToken + 1}, []Token{MinToken, 1}, 0.5, false},
		{Range{0, MinToken}, []Token{1, MaxToken, MinToken}, []Token{0, -1}, 0.5, false},
		{Range{-1 << 62, 1 << 62}, []Token{0}, []Token{-1 << 62, MaxToken}, 0.5, false},
		{Range{1 << 62, -1 << 62}, []Token{MinToken}, []Token{0}, 0.5, false},
		{Range{0, 1 << 62}, []Token{5}, []Token{-5}, 0.25, false},
		{Range{1 << 62, 0}, []Token{-5}, []Token{5}, 0.75, false},
		{Range{7, 7}, []Token{7, 8, 6, MinToken}, nil, 1, true},
	}
	for _, test := range tests {
		for _, token := range test.in {
			if !test.r.Contains(token) {
				t.Errorf("%s lacks %s", test.r, token)
			}
		}
		for _, token := range test.out {
			if test.r.Contains(token) {
				t.Errorf("%s holds %s", test.r, token)
			}
		}
		if got := test.r.Size(); got != test.size {
			t.Errorf("size of %s is %g, want %g", test.r, got, test.size)
		}
		if test.r.Full() != test.full {
			t.Errorf("%s full: %t", test.r, test.r.Full())
		}
	}
	if got := (Range{-3, 4}).String(); got != "(-3,4]" {
		t.Errorf("printed %q", got)
	}
}

func FuzzParseTokens(f *testing.F) {
	for _, seed := range []string{"0", "1,2", " -9223372036854775808 , 5", "", ",", "9223372036854775808", "1,\t2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := ParseTokens(text)
		if err != nil {
			return
		}
		if len(tokens) == 0 {
			t.Fatalf("%q gives no tokens and no error", text)
		}
		again, err := ParseTokens(FormatTokens(tokens))
		if err != nil || !slices.Equal(again, tokens) {
			t.Fatalf("%q gives %v, written and read again %v, %v", text, tokens, again, err)
		}
	})
}
