// Package stock holds the configuration directories of the official images, one for each line of
// releases, for tests and simulations: what is rendered is rendered on such files. It imports the
// standard library alone.
package stock
