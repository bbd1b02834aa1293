// Package safeguard takes the product's safeguards away, one by one or those together that are
// doubled by design, and shows that the checkers of the trials notice each; and that each refuses
// what it is there to refuse while it is in place. It tries an operator whose rules have another
// revision, too. It has only tests, which wrap what the product's programs touch: the product
// itself knows nothing of it. With TELL=1 in the environment a test that is run with -v tells its
// scenarios. It imports world and trial.
package safeguard
