package facts

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// endpoints are drawn from few values, so that equal ones are frequent, and so are those that would
// be equal if their texts ran into one another.
func endpoints(label string) *rapid.Generator[[]Endpoint] {
	text := rapid.SampledFrom([]string{"", "a", "b", "ab", "ba"})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Endpoint {
		return Endpoint{
			Address: text.Draw(t, label+"address"), HostID: text.Draw(t, label+"hostID"),
			Datacenter: text.Draw(t, label+"datacenter"), Rack: text.Draw(t, label+"rack"),
			Status: GossipStatus(text.Draw(t, label+"status")), Live: rapid.Bool().Draw(t, label+"live"),
			Release:       text.Draw(t, label+"release"),
			SchemaVersion: text.Draw(t, label+"schema"),
			Tokens:        rapid.SliceOfN(rapid.Int64Range(-1, 1), 0, 2).Draw(t, label+"tokens"),
			Load:          rapid.Int64Range(0, 1).Draw(t, label+"load"),
		}
	}), 0, 3)
}

// alike says that endpoints are the same in all but their loads.
func alike(a, b []Endpoint) bool {
	return slices.EqualFunc(a, b, func(a, b Endpoint) bool {
		sameTokens := slices.Equal(a.Tokens, b.Tokens)
		a.Load, b.Load, a.Tokens, b.Tokens = 0, 0, nil, nil
		return sameTokens && reflect.DeepEqual(a, b)
	})
}

// Two rings are told apart by their views exactly if their endpoints differ in anything but their
// loads, whether the views were kept or not.
func TestViewsAreEqualIfTheirEndpointsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &Ring{Endpoints: endpoints("a.").Draw(t, "a")}
		b := &Ring{Endpoints: rapid.OneOf(endpoints("b."), rapid.Just(changed(t, a.Endpoints))).Draw(t, "b")}
		if rapid.Bool().Draw(t, "a is kept") {
			a.KeepView()
		}
		if rapid.Bool().Draw(t, "b is kept") {
			b.KeepView()
		}
		if same := a.View() == b.View(); same != alike(a.Endpoints, b.Endpoints) {
			t.Fatalf("the same view: %v, of\n%+v and\n%+v", same, a.Endpoints, b.Endpoints)
		}
	})
}

// changed are the same endpoints, of which one may differ a little.
func changed(t *rapid.T, from []Endpoint) []Endpoint {
	out := slices.Clone(from)
	for i := range out {
		out[i].Tokens = slices.Clone(out[i].Tokens)
		out[i].Load++
	}
	if len(out) == 0 {
		return out
	}
	e := &out[rapid.IntRange(0, len(out)-1).Draw(t, "which")]
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		e.Live = !e.Live
	case 1:
		e.Tokens = append(e.Tokens, 1)
	case 2: // what one text loses the next one gets
		e.Address, e.HostID = "", e.Address+e.HostID
	case 3:
		slices.Reverse(out)
	}
	return out
}

// Whatever field an endpoint gets, it must be seen in its view, or be named here as one that no
// decision compares.
func TestEveryFieldOfAnEndpointIsInItsView(t *testing.T) {
	none := &Ring{Endpoints: []Endpoint{{}}}
	fields := reflect.TypeFor[Endpoint]()
	for i := range fields.NumField() {
		r := &Ring{Endpoints: []Endpoint{{}}}
		switch f := reflect.ValueOf(&r.Endpoints[0]).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int64:
			f.SetInt(1)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			t.Fatalf("%s is a %s: say here how it is changed", fields.Field(i).Name, f.Kind())
		}
		if seen := r.View() != none.View(); seen != (fields.Field(i).Name != "Load") {
			t.Errorf("%s is seen: %v", fields.Field(i).Name, seen)
		}
	}
}

// A view that was kept is not that of another list of endpoints.
func TestAKeptViewIsOfItsEndpointsAlone(t *testing.T) {
	one, two := []Endpoint{{HostID: "a"}}, []Endpoint{{HostID: "a"}, {HostID: "b"}}
	for name, c := range map[string]struct{ kept, then []Endpoint }{
		"another list": {one, []Endpoint{{HostID: "b"}}},
		"a longer one": {one, append(slices.Clip(one), Endpoint{HostID: "b"})},
		"a part of it": {two, two[:1]},
		"the rest":     {two, two[1:]},
		"none":         {one, nil},
		"some":         {nil, one},
	} {
		r := &Ring{Endpoints: c.kept}
		r.KeepView()
		copied := *r
		copied.Endpoints = c.then
		if want := (&Ring{Endpoints: c.then}).View(); copied.View() != want {
			t.Errorf("%s: the view that was kept", name)
		}
	}
	(*Ring)(nil).KeepView()
}

func TestSameViews(t *testing.T) {
	a, b := []Endpoint{{HostID: "a", Load: 1}}, []Endpoint{{HostID: "b"}}
	rings := []*Ring{{Endpoints: a}, {Endpoints: b}, {Endpoints: []Endpoint{{HostID: "a"}}}, {Endpoints: b}, {}}
	rings[2].KeepView()
	if got := fmt.Sprint(SameViews(rings)); got != "[0 1 0 1 4]" {
		t.Errorf("%s, want [0 1 0 1 4]", got)
	}
}

// Whoever looks for many finds what ByHostID finds.
func TestByHostIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Ring{Endpoints: endpoints("").Draw(t, "endpoints")}
		all := r.ByHostIDs()
		for _, id := range []string{"", "a", "b", "ab", "ba", "other"} {
			want, known := r.ByHostID(id)
			got := all[id]
			if (got != nil) != known || known && !reflect.DeepEqual(*got, want) {
				t.Fatalf("%q: %+v, want %+v (%v)", id, got, want, known)
			}
		}
	})
}

// BenchmarkView is the digest of what one node sees of 1,000 others.
func BenchmarkView(b *testing.B) {
	r := &Ring{}
	for i := range 1000 {
		r.Endpoints = append(r.Endpoints, Endpoint{
			Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250), HostID: fmt.Sprintf("5d1ba3c0-0000-4000-8000-%012d", i),
			Datacenter: "dc1", Rack: "r1", Status: StatusNormal,
			Live: true, Release: "5.0.6", SchemaVersion: "5d1ba3c0-0000-4000-8000-000000000000",
			Tokens: make([]int64, 16),
		})
	}
	for b.Loop() {
		r.View()
	}
}
