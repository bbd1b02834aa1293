// Package apiserver is a Kubernetes API server in memory, for worlds in one process: one thread of control, virtual time, the same answers as the real
// server to everything that Helenus asks. Kinds of Helenus are pruned, defaulted and validated by Kubernetes' own packages from the generated definitions,
// server-side apply is Kubernetes' own field manager, and test/api holds the whole to a real server by random sequences of requests.
//
// A world compiles the kinds once (Compile), makes a Server for each run (New), and gives each of its processes a client (Server.As). Every committed change
// is an Event (Server.Watch); Cache is a view that lags behind; Collector does the work of the controllers that finish deletions. An Interceptor stands
// before and after every request: what it returns is what the caller gets, and what it panics with goes through.
//
// It imports Kubernetes' libraries, controller-runtime's client interface, and nothing of the product. It starts no goroutine, reads no clock and throws no
// dice: time and uids are given to it.
package apiserver
