package ring

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// View is the ring as one node sees it.
type View struct {
	// Observer is the id of the node that sees it so.
	Observer string
	Members  []Member
}

// Member is a node as another sees it.
type Member struct {
	HostID string
	// Status is the state that gossip gives it, such as NORMAL or LEAVING.
	Status string
	// Tokens are in any order.
	Tokens []Token
}

// Disagreement is one thing that a view sees otherwise than the view that most
// observers share.
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

// Disagreements compares views: whether all have the same members with the same
// status and tokens. Each view is compared with the one that most observers
// share; if several are shared by as many, with that of the first observer by
// id. The result is sorted by observer and host id, and empty if all agree; no
// views, or one, agree.
func Disagreements(views []View) []Disagreement {
	order := slices.Clone(views)
	slices.SortStableFunc(order, func(a, b View) int { return cmp.Compare(a.Observer, b.Observer) })
	sights := make([]map[string]sight, len(order))
	shared := map[string]int{}
	for i, view := range order {
		sights[i] = sightsOf(view)
		shared[key(sights[i])]++
	}
	var common map[string]sight
	most := 0
	for _, seen := range sights {
		if count := shared[key(seen)]; count > most {
			common, most = seen, count
		}
	}
	var found []Disagreement //nolint:prealloc // most often there are none
	for i, view := range order {
		found = append(found, compare(view.Observer, sights[i], common)...)
	}
	return found
}

// sight is what a view says of one host id; the zero value is that it says
// nothing.
type sight struct{ status, tokens string }

func sightsOf(view View) map[string]sight {
	sights := make(map[string]sight, len(view.Members))
	for _, member := range view.Members {
		seen := sight{member.Status, FormatTokens(slices.Sorted(slices.Values(member.Tokens)))}
		if other, twice := sights[member.HostID]; twice {
			// Two endpoints with one host id, in either order: never the same as one.
			seen = sight{
				min(seen.status, other.status) + " and " + max(seen.status, other.status),
				min(seen.tokens, other.tokens) + " and " + max(seen.tokens, other.tokens),
			}
		}
		sights[member.HostID] = seen
	}
	return sights
}

// key is equal for equal sights only; %q keeps any two apart.
func key(sights map[string]sight) string {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(sights)) {
		fmt.Fprintf(&text, "%q %q %q;", id, sights[id].status, sights[id].tokens)
	}
	return text.String()
}

func compare(observer string, seen, common map[string]sight) []Disagreement {
	all := maps.Clone(common)
	maps.Copy(all, seen)
	var found []Disagreement
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if seen[id] != common[id] {
			found = append(found, Disagreement{observer, id, seen[id].words(common[id]), common[id].words(seen[id])})
		}
	}
	return found
}

// words tell a sight apart from another that differs from it.
func (s sight) words(other sight) string {
	switch {
	case s == sight{}:
		return "nothing"
	case s.status != other.status:
		return s.status
	case s.tokens == "":
		return s.status + " without tokens"
	}
	return s.status + " with tokens " + s.tokens
}
