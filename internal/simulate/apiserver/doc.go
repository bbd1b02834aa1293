// Package apiserver is a Kubernetes API server in memory, for worlds in one process: one thread of
// control, virtual time, the same answers as the real server to everything that Helenus asks. Kinds
// of Helenus are pruned, defaulted and validated by Kubernetes' own packages from the generated
// definitions, and server-side apply is Kubernetes' own field manager. What the server itself does
// with objects, and the rules of its own kinds, are written after Kubernetes 1.35 (no release of
// k8s.io/kubernetes fits the client libraries that Helenus uses); test/api/compare holds all of it
// to a real server by random sequences of requests.
//
// A world compiles the kinds once (Compile), makes a Server for each run (New), and gives each of
// its processes a client (Server.As). Every committed change is an Event (Server.Watch); Cache is a
// view that lags behind; Collector does the work of the controllers that finish deletions. An
// Interceptor stands before and after every request: what it returns is what the caller gets, and
// what it panics with goes through.
//
// # What is known to be otherwise
//
// None of this can be noticed by Helenus, and the comparison leaves it out:
//
//   - Words of errors. Codes, reasons and the fields that are wrong are the same; nothing of Helenus reads more.
//   - Rights and policies: everybody may do everything. test/api tries these on the real server,
//     and an Interceptor can refuse.
//   - Fields of Kubernetes' own kinds that neither Helenus writes nor its users can by settings or
//     usual overlays: they are stored as they come. So are names
//     that only some kinds refuse.
//   - Services with node ports, load balancers, external names, two families of addresses or an
//     address that is asked for, and making a service by writing
//     its status. Addresses are given in their order, those of the real server at random.
//   - Mounted tokens of service accounts, classes of priority, quotas and ranges of limits: pods of
//     Helenus turn the first off, and name the others at most.
//   - Events of the real server's own: it writes one beside a service whose address it does not know yet.
//   - The end of a namespace: it is marked and closed, but nobody empties it.
//   - Lists in pieces and lists of the past: Helenus always asks for all there is now.
//   - Names that the server makes up, and whether nothing or something empty is left where
//     everything is taken away; the latter shows in immutable objects
//     alone.
//   - Servers before 1.37 count the metadata that a write of the status of a custom kind carries as
//     the writer's, without changing it, name the fields of
//     owner references in another way, and leave a null behind where an apply takes the last field
//     of a map away that another manager made.
//
// It imports Kubernetes' libraries, controller-runtime's client interface, and nothing of the
// product. It starts no goroutine, reads no clock and throws no dice: time and uids are given to
// it.
package apiserver
