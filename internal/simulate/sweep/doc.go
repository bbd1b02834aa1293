// Package sweep runs very many trials: every scenario, every point of it, every fault that can be
// injected there, and counts what was tried and what broke. It imports trial.
package sweep
