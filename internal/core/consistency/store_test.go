package consistency

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAWriteIsUnseenUntilAViewShowsIt(t *testing.T) {
	pod := Key{Kind: "Pod", Namespace: "shop", Name: "orders-dc1-r1-0"}
	written := func(s *Store) { s.Wrote(pod, "first", "100") }
	deleted := func(s *Store) { s.Deleted(pod, "first") }
	for name, c := range map[string]struct {
		write func(*Store)
		view  *Seen
		seen  bool
	}{
		"written, nothing there yet": {written, nil, false},
		"written, older version":     {written, &Seen{UID: "first", ResourceVersion: "99"}, false},
		"written, older version of more digits": {func(s *Store) { s.Wrote(pod, "first", "1000") },
			&Seen{UID: "first", ResourceVersion: "999"}, false},
		"written, this version":                {written, &Seen{UID: "first", ResourceVersion: "100"}, true},
		"written, newer version":               {written, &Seen{UID: "first", ResourceVersion: "101"}, true},
		"written, an older object of the name": {written, &Seen{UID: "zeroth", ResourceVersion: "50"}, false},
		"written, a newer object of the name":  {written, &Seen{UID: "second", ResourceVersion: "150"}, true},
		"written, a version that is no number": {written, &Seen{UID: "first", ResourceVersion: "abc"}, false},
		"deleted, still there":                 {deleted, &Seen{UID: "first", ResourceVersion: "99"}, false},
		"deleted, being deleted": {deleted, &Seen{UID: "first", ResourceVersion: "101", Deleting: true},
			true},
		"deleted, gone":                          {deleted, nil, true},
		"deleted, another object under the name": {deleted, &Seen{UID: "second", ResourceVersion: "150"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{}
			c.write(s)
			look := func(key Key) (Seen, bool) {
				if key != pod || c.view == nil {
					return Seen{}, false
				}
				return *c.view, true
			}
			if got := len(s.Unseen(look)) == 0; got != c.seen {
				t.Errorf("seen %v, want %v", got, c.seen)
			}
			if s.Pending(pod) == c.seen {
				t.Errorf("pending %v, want %v", s.Pending(pod), !c.seen)
			}
		})
	}
}

func TestWhatIsGoneIsNotWaitedFor(t *testing.T) {
	a, b := Key{Kind: "Pod", Name: "a"}, Key{Kind: "Pod", Name: "b"}
	s := &Store{}
	s.Wrote(b, "2", "2")
	s.Wrote(a, "1", "1")
	nothing := func(Key) (Seen, bool) { return Seen{}, false }
	if got := s.Unseen(nothing); !slices.Equal(got, []Key{a, b}) {
		t.Fatalf("unseen %v, want both, sorted", got)
	}
	s.Gone(a)
	if got := s.Unseen(nothing); !slices.Equal(got, []Key{b}) {
		t.Errorf("unseen %v, want only %v", got, b)
	}
}

// What a plan wrote itself is no change of what it rests on.
func TestIs(t *testing.T) {
	var s Store
	pod := Key{Kind: "Pod", Namespace: "shop", Name: "orders-dc1-r1-0"}
	s.Wrote(pod, "first", "100")
	for name, c := range map[string]struct {
		key     Key
		uid     types.UID
		version string
		want    bool
	}{
		"as it was written": {pod, "first", "100", true},
		"written since":     {pod, "first", "101", false},
		"another of it":     {pod, "second", "100", false},
		"never written":     {Key{Kind: "Pod", Name: "x"}, "first", "100", false},
	} {
		if got := s.Is(c.key, c.uid, c.version); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	s.Deleted(pod, "first")
	if s.Is(pod, "first", "100") {
		t.Error("it was deleted")
	}
}
