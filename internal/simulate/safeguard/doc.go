// Package safeguard takes the product's safeguards away, one by one or those together that are doubled by design, and shows that the oracles of the trials
// notice each; and that each refuses what it is there to refuse while it is in place. It has only tests, which wrap what the product's programs touch: the
// product itself knows nothing of it. It imports world and trial.
package safeguard
