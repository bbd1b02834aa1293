package facts

import "slices"

// Up are the host ids of the members that a node sees up, its own among them, sorted.
func (r *Ring) Up() []string {
	return r.hostIDs(func(e Endpoint) bool { return e.Member() && e.Live })
}

// Down are the host ids of the members that it sees down, but for those that join, leave or move,
// sorted.
func (r *Ring) Down() []string {
	return r.hostIDs(func(e Endpoint) bool { return e.Member() && !e.InFlight() && !e.Live })
}

func (r *Ring) hostIDs(are func(Endpoint) bool) []string {
	var out []string
	for _, e := range r.Endpoints {
		if are(e) {
			out = append(out, e.HostID)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Unseen are the host ids of members that others see up and a node does not, sorted. A node sees
// its ring when there are none, and is seen when it is among those that each of the others sees up.
func Unseen(up []string, others ...[]string) []string {
	var out []string
	for _, other := range others {
		for _, id := range other {
			if !slices.Contains(up, id) {
				out = append(out, id)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
