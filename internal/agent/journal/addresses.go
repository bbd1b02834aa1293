package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// UseAddress records the address that this node has now. The one before was used, as far as anybody knows, until now.
func (j *Journal) UseAddress(address string) error {
	return j.update(func(c *Content, now time.Time) error {
		last := len(c.Addresses) - 1
		if last >= 0 && c.Addresses[last].Address == address && c.Addresses[last].Until.IsZero() {
			return nil
		}
		if last >= 0 && c.Addresses[last].Until.IsZero() {
			c.Addresses[last].Until = now
		}
		c.Addresses = append(c.Addresses, AddressUse{Address: address, From: now})
		c.Addresses = c.Addresses[max(0, len(c.Addresses)-KeptAddresses):]
		return nil
	})
}

// SeePeers records members as they are seen now, by host id. A member that is not among them is not forgotten: being away
// is no reason to lose its address. One that has another address than before had the former one until now. Only changes
// are written, so that this may be called often.
func (j *Journal) SeePeers(seen []Peer) error {
	return j.update(func(c *Content, now time.Time) error {
		c.forgetAddresses(now)
		for _, p := range seen {
			if p.HostID == "" || p.Address == "" {
				return fmt.Errorf("see peer %s: it has no host id or no address", p.Node)
			}
			at := c.peer(p.HostID)
			if at >= 0 && c.Peers[at].Address == p.Address {
				c.Peers[at].Node, c.Peers[at].Agent = p.Node, p.Agent
				continue
			}
			if at >= 0 {
				c.Peers[at].Until = now
			}
			p.Since, p.Until = now, time.Time{}
			c.Peers = append(c.Peers, p)
		}
		if len(c.Peers) > MaxPeers {
			return fmt.Errorf("see peers: %d are more than the %d that the journal holds", len(c.Peers), MaxPeers)
		}
		// In an order that does not depend on the caller's: the same peers are no change.
		slices.SortStableFunc(c.Peers, func(a, b Peer) int { return strings.Compare(a.HostID, b.HostID) })
		return nil
	})
}

// ForgetPeers ends the use of the addresses of members that have left the ring.
func (j *Journal) ForgetPeers(hostIDs ...string) error {
	return j.update(func(c *Content, now time.Time) error {
		c.forgetAddresses(now)
		for _, id := range hostIDs {
			if at := c.peer(id); at >= 0 {
				c.Peers[at].Until = now
			}
		}
		return nil
	})
}

// Owners returns the other members that have an address or had it within AddressMemory.
func (c Content) Owners(address string, now time.Time) []Peer {
	var owners []Peer
	for _, p := range c.Peers {
		if p.Address == address && p.HostID != c.Identity.HostID && (p.Until.IsZero() || now.Sub(p.Until) < AddressMemory) {
			owners = append(owners, p)
		}
	}
	return owners
}

// peer finds the present address of a member.
func (c *Content) peer(hostID string) int {
	return slices.IndexFunc(c.Peers, func(p Peer) bool { return p.HostID == hostID && p.Until.IsZero() })
}

// forgetAddresses drops former addresses that no ring keeps any more.
func (c *Content) forgetAddresses(now time.Time) {
	c.Peers = slices.DeleteFunc(c.Peers, func(p Peer) bool { return !p.Until.IsZero() && now.Sub(p.Until) >= AddressMemory })
}
