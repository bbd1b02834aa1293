package agentapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/internal/core/facts"
)

// MaxWait is the longest wait of a question for facts.
const MaxWait = time.Minute

// Timed is an answer to a question that came at a time, by the clock of the agent's host.
func Timed(answer *facts.Agent, asked, now time.Time) *facts.Agent {
	timed := *answer
	timed.Clock = &facts.Clock{Asked: asked, Answered: now}
	return &timed
}

// Digest of an answer: the same for answers that say the same, and agree on whether hints are being
// delivered to anybody, on whether incremental repairs run, and on whether the data volume is full.
func Digest(answer *facts.Agent) string {
	out := digest(answer)
	if answer.Ring.Delivers() {
		out += "+hints"
	}
	if answer.Ring.Repairs() {
		out += "+repairs"
	}
	if answer.Space.Full() {
		out += "+full"
	}
	return out
}

// Same says that two answers differ only in the time at which they were given, and in what changes
// all the time: the size of the nodes' data, hints, batches, incremental repairs, clients, and
// when an address was last used.
func Same(a, b *facts.Agent) bool { return digest(a) == digest(b) }

func digest(answer *facts.Agent) string {
	timeless := *answer
	timeless.ObservedAt, timeless.Clock, timeless.Space = time.Time{}, nil, nil
	timeless.Addresses = slices.Clone(answer.Addresses)
	for i := range timeless.Addresses {
		timeless.Addresses[i].LastUsed = time.Time{}
	}
	if answer.Ring != nil {
		ring := *answer.Ring
		ring.Hints, ring.Unfinished, ring.PlainClients = nil, nil, nil
		ring.Endpoints = slices.Clone(ring.Endpoints)
		for i := range ring.Endpoints {
			ring.Endpoints[i].Load = 0
		}
		timeless.Ring = &ring
	}
	text, err := json.Marshal(&timeless)
	if err != nil {
		panic(fmt.Sprintf("encode facts: %v", err)) // plain data only: cannot happen
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
