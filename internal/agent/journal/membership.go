package journal

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Identify completes the identity with what became known: the host id after the first start, names inside Cassandra. Empty
// fields are not known yet. What contradicts the journal is an error and changes nothing.
func (j *Journal) Identify(i Identity) error {
	return j.update(func(c *Content, _ time.Time) error {
		for _, field := range []struct {
			name string
			have *string
			want string
		}{
			{"cluster uid", &c.Identity.ClusterUID, i.ClusterUID},
			{"cluster name", &c.Identity.ClusterName, i.ClusterName},
			{"node", &c.Identity.Node, i.Node},
			{"host id", &c.Identity.HostID, i.HostID},
			{"datacenter", &c.Identity.Datacenter, i.Datacenter},
			{"rack", &c.Identity.Rack, i.Rack},
		} {
			switch {
			case field.want == "" || *field.have == field.want:
			case *field.have != "":
				return fmt.Errorf("identify node: its %s is %q, not %q", field.name, *field.have, field.want)
			default:
				*field.have = field.want
			}
		}
		return nil
	})
}

// Adopt moves the journal from one cluster to another that takes its disks over; a journal that is there already is left.
// All else stays: the node is the same member of the same ring.
func (j *Journal) Adopt(from, to string) error {
	return j.update(func(c *Content, _ time.Time) error {
		switch c.Identity.ClusterUID {
		case to:
		case from:
			if to == "" {
				return errors.New("adopt journal: no cluster uid to adopt it for")
			}
			c.Identity.ClusterUID = to
		default:
			return fmt.Errorf("adopt journal of cluster %s: it is of cluster %s", from, c.Identity.ClusterUID)
		}
		return nil
	})
}

// BeginJoin records that the node begins to join on a ticket, before it does anything that the ring could see. The same
// ticket again is no change: an interrupted join goes on with it. Refused are a withdrawn ticket, another ticket than one
// that began, and New after client traffic was opened or the formation ended.
func (j *Journal) BeginJoin(ticket Join) error {
	return j.update(func(c *Content, now time.Time) error {
		switch {
		case ticket.ID == "":
			return errors.New("begin join: the ticket has no id")
		case slices.Contains(c.Withdrawn, ticket.ID):
			return fmt.Errorf("begin join: ticket %s was withdrawn", ticket.ID)
		case c.Join != nil && c.Join.ID == ticket.ID:
			return nil
		case c.Join != nil:
			return fmt.Errorf("begin join on ticket %s: this node began to join on ticket %s", ticket.ID, c.Join.ID)
		}
		switch ticket.Mode {
		case JoinNew:
			if c.TrafficOpened || c.Formed {
				return errors.New("begin join as New: client traffic was opened or the formation ended before")
			}
		case JoinBootstrap, JoinReplace:
		default:
			return fmt.Errorf("begin join: mode %q is none of New, Bootstrap, Replace", ticket.Mode)
		}
		ticket.StartedAt, ticket.FinishedAt = now, time.Time{}
		c.Join = &ticket
		return nil
	})
}

// FinishJoin records that the node was seen NORMAL with the tokens of its ticket.
func (j *Journal) FinishJoin(id string) error {
	return j.update(func(c *Content, now time.Time) error {
		if c.Join == nil || c.Join.ID != id {
			return fmt.Errorf("finish join: no join on ticket %s began", id)
		}
		if c.Join.FinishedAt.IsZero() {
			c.Join.FinishedAt = now
		}
		return nil
	})
}

// WithdrawJoin records that a ticket will never begin here. It says false, and changes nothing, if it began already.
func (j *Journal) WithdrawJoin(id string) (withdrawn bool, err error) {
	err = j.update(func(c *Content, _ time.Time) error {
		withdrawn = c.Join == nil || c.Join.ID != id
		if withdrawn && !slices.Contains(c.Withdrawn, id) {
			c.Withdrawn = append(c.Withdrawn, id)
			c.Withdrawn = c.Withdrawn[max(0, len(c.Withdrawn)-KeptWithdrawn):]
		}
		return nil
	})
	return withdrawn && err == nil, err
}

// ForgetMembership clears what belongs to data that is about to be wiped: host id, join, addresses of the ring. It is for
// a node that never came to be a member; one that finished its join keeps everything, and the call is an error.
func (j *Journal) ForgetMembership() error {
	return j.update(func(c *Content, _ time.Time) error {
		if c.TrafficOpened || c.Formed || c.Join != nil && !c.Join.FinishedAt.IsZero() {
			return errors.New("forget membership: this node is or was a member")
		}
		if c.Join != nil && !slices.Contains(c.Withdrawn, c.Join.ID) {
			c.Withdrawn = append(c.Withdrawn, c.Join.ID)
		}
		c.Identity.HostID, c.Join, c.AliveUntil = "", nil, time.Time{}
		return nil
	})
}

// OpenTraffic records, before it is done, that the native transport is opened to clients. It is never taken back.
func (j *Journal) OpenTraffic() error {
	return j.update(func(c *Content, _ time.Time) error { c.TrafficOpened = true; return nil })
}

// MarkFormed records that the formation of the datacenter is complete. It is never taken back.
func (j *Journal) MarkFormed() error {
	return j.update(func(c *Content, _ time.Time) error { c.Formed = true; return nil })
}

// AddReplaced records host ids that were replaced. They are never taken back.
func (j *Journal) AddReplaced(hostIDs ...string) error {
	return j.update(func(c *Content, _ time.Time) error {
		for _, id := range hostIDs {
			if at, known := slices.BinarySearch(c.Replaced, id); !known && id != "" {
				c.Replaced = slices.Insert(c.Replaced, at, id)
			}
		}
		return nil
	})
}

// Alive records that the node is NORMAL now. It writes at most once in AliveInterval, and after a clock that went back.
func (j *Journal) Alive() error {
	return j.update(func(c *Content, now time.Time) error {
		if passed := now.Sub(c.AliveUntil); passed >= AliveInterval || passed < 0 {
			c.AliveUntil = now
		}
		return nil
	})
}

// SetWindows records for how long the node may be away: the smallest positive gc_grace of a replicated user table, and the
// hint window, in whole seconds. 0 is not known.
func (j *Journal) SetWindows(smallestGCGrace, hintWindow time.Duration) error {
	return j.update(func(c *Content, _ time.Time) error {
		if smallestGCGrace < 0 || hintWindow < 0 {
			return fmt.Errorf("set windows: gc_grace %s and hint window %s must not be negative", smallestGCGrace, hintWindow)
		}
		c.SmallestGCGraceSeconds, c.HintWindowSeconds = int64(smallestGCGrace/time.Second), int64(hintWindow/time.Second)
		return nil
	})
}
