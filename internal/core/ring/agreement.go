package ring

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// View is the ring as some nodes see it.
type View struct {
	// Observers are the ids of the nodes that see it so. One is in no other view.
	Observers []string
	Members   []Member
}

// Member is a node as another sees it.
type Member struct {
	HostID string
	// Status is the state that gossip gives it, such as NORMAL or LEAVING.
	Status string
	// Tokens are in any order.
	Tokens []Token
}

// Disagreement is one thing that a view sees otherwise than the view that most observers share.
type Disagreement struct {
	// Observer sees the member otherwise.
	Observer string
	HostID   string
	// Seen and Common are what the observer and most others see of it, in words:
	// "nothing", or the status, or, if that is the same, the tokens.
	Seen   string
	Common string
}

// String is a sentence such as: a sees nothing of b, most see NORMAL.
func (d Disagreement) String() string {
	return fmt.Sprintf("%s sees %s of %s, most see %s", d.Observer, d.Seen, d.HostID, d.Common)
}

// Disagreements compares views: whether all have the same members with the same status and tokens.
// Each view is compared with the one that most observers share; if several are shared by as many,
// with that of the first observer by id. The result is sorted by observer and host id, and empty if
// all agree; no views, or one, agree.
func Disagreements(views []View) []Disagreement {
	if len(views) < 2 {
		return nil
	}
	// Views that differ in what is of no concern here share a sight.
	var sights []*sight
	byKey := map[string]*sight{}
	for _, view := range views {
		seen := sightOf(view.Members)
		key := seen.key()
		shared, ok := byKey[key]
		if !ok {
			shared = seen
			byKey[key] = seen
			sights = append(sights, seen)
		}
		shared.observers = append(shared.observers, view.Observers...)
	}
	common := mostShared(sights)
	var found []Disagreement //nolint:prealloc // most often there are none
	for _, seen := range sights {
		if seen != common {
			found = append(found, seen.compare(common)...)
		}
	}
	slices.SortStableFunc(found, func(a, b Disagreement) int { return cmp.Compare(a.Observer, b.Observer) })
	return found
}

// mostShared is the sight that most observers share; among equals, that of the first observer.
func mostShared(sights []*sight) *sight {
	return slices.MinFunc(sights, func(a, b *sight) int {
		return cmp.Or(cmp.Compare(len(b.observers), len(a.observers)),
			cmp.Compare(first(a.observers), first(b.observers)))
	})
}

func first(observers []string) string {
	if len(observers) == 0 {
		return ""
	}
	return slices.Min(observers)
}

// sight is what observers see, by host id.
type sight struct {
	observers []string
	of        map[string]state
}

// state is what a view says of one host id. The zero value is that it says nothing.
type state struct {
	status string
	// tokens in a form that is equal for equal ones, in any order; those of two
	// endpoints with one host id are in words.
	tokens, words string
}

func sightOf(members []Member) *sight {
	s := &sight{of: make(map[string]state, len(members))}
	for _, member := range members {
		seen := state{status: member.Status, tokens: packed(member.Tokens)}
		if other, twice := s.of[member.HostID]; twice {
			// Two endpoints with one host id, in either order: never the same as one.
			a, b := seen.inWords(), other.inWords()
			seen = state{
				status: min(seen.status, other.status) + " and " + max(seen.status, other.status),
				words:  min(a, b) + " and " + max(a, b),
			}
		}
		s.of[member.HostID] = seen
	}
	return s
}

// packed writes sorted tokens as bytes. Words are made of the few alone in which views differ.
func packed(tokens []Token) string {
	if !slices.IsSorted(tokens) {
		tokens = slices.Sorted(slices.Values(tokens))
	}
	text := make([]byte, 0, 8*len(tokens))
	for _, token := range tokens {
		text = binary.BigEndian.AppendUint64(text, uint64(token))
	}
	return string(text)
}

func (s state) inWords() string {
	if s.words != "" {
		return s.words
	}
	tokens := make([]Token, 0, len(s.tokens)/8)
	for text := []byte(s.tokens); len(text) > 0; text = text[8:] {
		tokens = append(tokens, Token(binary.BigEndian.Uint64(text)))
	}
	return FormatTokens(tokens)
}

// key is equal for equal sights only: each text in it begins with its length.
func (s *sight) key() string {
	const enough = 256 // for one of 16 tokens
	text := make([]byte, 0, enough*len(s.of))
	for _, id := range slices.Sorted(maps.Keys(s.of)) {
		seen := s.of[id]
		for _, part := range [...]string{id, seen.status, seen.tokens, seen.words} {
			text = binary.AppendUvarint(text, uint64(len(part)))
			text = append(text, part...)
		}
	}
	return string(text)
}

// compare finds what each observer sees otherwise than most do.
func (s *sight) compare(common *sight) []Disagreement {
	var differ []string
	for id, seen := range s.of {
		if seen != common.of[id] {
			differ = append(differ, id)
		}
	}
	for id, most := range common.of {
		if _, both := s.of[id]; !both && most != (state{}) {
			differ = append(differ, id)
		}
	}
	slices.Sort(differ)
	var found []Disagreement
	for _, id := range differ {
		seen, most := s.of[id], common.of[id]
		for _, observer := range s.observers {
			found = append(found, Disagreement{observer, id, seen.apartFrom(most), most.apartFrom(seen)})
		}
	}
	return found
}

// apartFrom are words that tell a state apart from another that differs from it.
func (s state) apartFrom(other state) string {
	switch {
	case s == state{}:
		return "nothing"
	case s.status != other.status:
		return s.status
	case s.tokens == "" && s.words == "":
		return s.status + " without tokens"
	}
	return s.status + " with tokens " + s.inWords()
}
