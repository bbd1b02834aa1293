// Package compare holds the API server in memory (internal/simulate/apiserver) to a real one:
// random sequences of requests go to both through the same client interface, and every answer and
// every watch must be the same. There is nothing here but tests; they may import the product, its
// simulator, and the local Kubernetes that starts the real server. A run makes the same requests
// every time, unless it is given another seed, or 0 for one that nobody knows (make compare); a
// failure names the seed that repeats it:
//
//	go test ./compare -compare.seed=…
//
// What is known to differ, and why Helenus cannot notice it, stands in the documentation of package
// apiserver.
package compare
