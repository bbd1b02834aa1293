// Package facts holds what is known about a cluster at one moment: the plain data that observe
// gathers, agents report and the deciding packages read. It has no behaviour beyond answering
// questions about itself, and imports only the API types and core/ring.
package facts
