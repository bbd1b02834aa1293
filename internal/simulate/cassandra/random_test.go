package cassandra

import (
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

// TestAfterAnyTroubleTheRingIsWholeAgain does what chance says to a ring whose disks stay, heals
// everything, and wants one picture of the ring and every acknowledged write.
func TestAfterAnyTroubleTheRingIsWholeAgain(t *testing.T) {
	runs := uint64(40)
	if testing.Short() {
		runs = 5
	}
	written := 0
	for seed := range runs {
		l := newLab(t, seed)
		size := 3 + int(seed%4)
		nodes, p := l.form(size)
		l.keyspace(p[0], "shop", map[string]int{"dc1": 3})
		dice := l.line.Dice()
		for step := range 40 {
			i := dice.IntN(size)
			switch dice.IntN(9) {
			case 0:
				p[i].Kill()
			case 1:
				p[i].Terminate()
			case 2, 3:
				if p[i].Ended() {
					p[i] = l.start(nodes[i])
				}
			case 4:
				p[i].Freeze(dice.IntN(2) == 0)
			case 5:
				p[i].Thaw()
			case 6:
				l.net.Isolate(nodes[i].address)
			case 7:
				l.net.Heal(nodes[i].address)
			case 8:
				l.net.Slow(nodes[i].address, 1+dice.Float64()*3)
			}
			l.line.RunFor(l.line.Between(0, 40*time.Second))
			for j := range 5 {
				if p[dice.IntN(size)].Write("shop", fmt.Sprint("k", step, j), "v", ring.Quorum) == nil {
					written++
				}
			}
		}
		for i, n := range nodes {
			l.net.Heal(n.address)
			l.net.Slow(n.address, 1)
			p[i].Thaw()
		}
		l.line.RunFor(time.Minute)
		for i, n := range nodes {
			if p[i].Ended() || p[i].drained {
				p[i].Kill()
				p[i] = l.start(n)
			}
		}
		for i, n := range nodes {
			if p[i].Ended() || !l.line.RunUntil(l.line.Now().Add(2*time.Minute), p[i].NativeOpen) && p[i].Ended() {
				p[i] = l.start(n) // it gave up before the others were there
			}
		}
		l.awaitFormed(p...)
		l.noneLost()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if written < int(runs)*20 {
		t.Errorf("only %d writes were acknowledged", written)
	}
}

// TestMembersThatMoveFindEachOther restarts members on new addresses, one or several at a time, as
// pods do.
func TestMembersThatMoveFindEachOther(t *testing.T) {
	for seed := range uint64(20) {
		l := newLab(t, seed)
		nodes, p := l.form(4)
		l.keyspace(p[0], "shop", map[string]int{"dc1": 3})
		l.fill(p[0], "shop", 0, 50)
		dice := l.line.Dice()
		next := 50
		for range 6 {
			moved := 1 + dice.IntN(2)
			first := dice.IntN(4)
			for k := range moved {
				i := (first + k) % 4
				p[i].Kill()
				nodes[i].address = address(next)
				next++
			}
			l.seeds = l.seeds[:0]
			for i := range nodes {
				if i != first && i != (first+moved-1)%4 {
					l.seeds = append(l.seeds, nodes[i].address)
				}
			}
			l.line.RunFor(l.line.Between(0, 30*time.Second))
			for k := range moved {
				i := (first + k) % 4
				p[i] = l.start(nodes[i])
			}
			l.awaitFormed(p...)
			for _, x := range p {
				if view := l.view(x); len(view.HostIDs) != 4 {
					t.Fatalf("seed %d: %s sees the members %v", seed, x.Address(), view.HostIDs)
				}
			}
			l.noneLost()
		}
	}
}
