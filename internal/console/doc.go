// Package console is the web page that shows clusters: its source in src, Preact in preact, and in
// dist what "make generate" makes of both. The page is a function of what internal/inspectapi
// describes, which src/types.ts repeats; it writes nothing, and loads and asks nothing outside of
// its origin. It imports the standard library.
package console
