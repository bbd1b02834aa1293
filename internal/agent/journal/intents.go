package journal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Begin records that an intent begins, before it has any effect. It says true if this call is the one that began it: only
// then may the effect be made. Otherwise the intent is returned as it is known: done, with its outcome; or running, which
// after a restart of the agent means that whether it took effect is not known.
//
// Ids are remembered for the last KeptDonePerSlot of each slot. A slot holds one intent at a time and its id never comes
// back after that many others, so forgetting cannot let one begin again.
func (j *Journal) Begin(slot, id string) (intent Intent, began bool, err error) {
	err = j.update(func(c *Content, now time.Time) error {
		if slot == "" || id == "" {
			return errors.New("begin intent: it has no slot or no id")
		}
		var known bool
		if intent, known = c.intent(slot, id); known {
			return nil
		}
		running := 0
		for _, other := range c.Intents {
			if !other.Done() {
				running++
			}
		}
		if running >= MaxRunningIntents {
			return fmt.Errorf("begin intent %s: %d are running", id, running)
		}
		intent, began = Intent{Slot: slot, ID: id, StartedAt: now}, true
		c.Intents = append(c.Intents, intent)
		return nil
	})
	return intent, began && err == nil, err
}

// Finish records how an intent ended. An outcome that is there stays: it says false if it was there before.
func (j *Journal) Finish(slot, id string, outcome Outcome, message string) (finished bool, err error) {
	err = j.update(func(c *Content, now time.Time) error {
		switch outcome {
		case Succeeded, Failed, Interrupted:
		default:
			return fmt.Errorf("finish intent %s: outcome %q is none of Succeeded, Failed, Interrupted", id, outcome)
		}
		at := c.intentIndex(slot, id)
		if at < 0 {
			return fmt.Errorf("finish intent %s of %s: it never began", id, slot)
		}
		if c.Intents[at].Done() {
			return nil
		}
		finished = true
		c.Intents[at].Outcome, c.Intents[at].FinishedAt, c.Intents[at].Message = outcome, now, shorten(message)
		c.forgetDone(slot)
		return nil
	})
	return finished && err == nil, err
}

// Withdraw records that an intent will never begin. If it began before, it is returned as it is and nothing changes.
func (j *Journal) Withdraw(slot, id, message string) (intent Intent, err error) {
	err = j.update(func(c *Content, now time.Time) error {
		if slot == "" || id == "" {
			return errors.New("withdraw intent: it has no slot or no id")
		}
		var known bool
		if intent, known = c.intent(slot, id); known {
			return nil
		}
		intent = Intent{Slot: slot, ID: id, FinishedAt: now, Outcome: Withdrawn, Message: shorten(message)}
		c.Intents = append(c.Intents, intent)
		c.forgetDone(slot)
		return nil
	})
	return intent, err
}

// Intent returns what is known of an intent.
func (j *Journal) Intent(slot, id string) (Intent, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.content.intent(slot, id)
}

func (c *Content) intentIndex(slot, id string) int {
	return slices.IndexFunc(c.Intents, func(i Intent) bool { return i.Slot == slot && i.ID == id })
}

func (c *Content) intent(slot, id string) (Intent, bool) {
	if at := c.intentIndex(slot, id); at >= 0 {
		return c.Intents[at], true
	}
	return Intent{}, false
}

// forgetDone drops the oldest intents of a slot that are done and too many.
func (c *Content) forgetDone(slot string) {
	surplus := -KeptDonePerSlot
	for _, i := range c.Intents {
		if i.Slot == slot && i.Done() {
			surplus++
		}
	}
	c.Intents = slices.DeleteFunc(c.Intents, func(i Intent) bool {
		drop := surplus > 0 && i.Slot == slot && i.Done()
		if drop {
			surplus--
		}
		return drop
	})
}

// BeginStart records that a JVM is about to be started and returns the id to start it with: above every id that this
// journal gave out and above used, the last one that init knows.
func (j *Journal) BeginStart(used uint64, configurationHash string) (id uint64, err error) {
	err = j.update(func(c *Content, _ time.Time) error {
		id = max(c.LastStartID, used) + 1
		c.LastStartID, c.ConfigurationHash = id, configurationHash
		return nil
	})
	return id, err
}

// RecordEnd records how a start ended. The same start again is no change.
func (j *Journal) RecordEnd(r Restart) error {
	return j.update(func(c *Content, _ time.Time) error {
		same := func(known Restart) bool { return known.StartID == r.StartID && known.StartedAt.Equal(r.StartedAt) }
		if slices.ContainsFunc(c.Restarts, same) {
			return nil
		}
		r.Reason = shorten(r.Reason)
		r.StartedAt, r.EndedAt = r.StartedAt.UTC(), r.EndedAt.UTC()
		c.Restarts = append(c.Restarts, r)
		c.Restarts = c.Restarts[max(0, len(c.Restarts)-KeptRestarts):]
		return nil
	})
}

// shorten bounds a text for people, in whole characters.
func shorten(text string) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= maxMessageBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessageBytes], "") + "…"
}
