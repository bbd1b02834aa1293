// Package sweep runs very many trials: every scenario, every moment of it, every fault that can strike there, and counts what was tried and what broke. It
// imports trial.
package sweep
