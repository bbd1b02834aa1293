package inspectapi

import (
	"fmt"
	"net"
	"net/http"
)

// The paths of the console, beside PathPattern.
const (
	// ConsolePath is where its files are.
	ConsolePath = "/console/"
	// FleetPath has the clusters that may be seen; of one namespace with ?namespace=NAME.
	FleetPath = "/v1/clusters"
	// ViewPattern is a View of a cluster, WatchPattern one after the other as server-sent events.
	ViewPattern  = PathPattern + "/view"
	WatchPattern = PathPattern + "/watch"
	// ReplicasPattern has the status.Replicas of ?keyspace=NAME, or of a key of it, of which each
	// column=TYPE:VALUE is in order, as ring.ParseKey reads it.
	ReplicasPattern = PathPattern + "/replicas"
)

// CheckOrigin refuses what a browser is made to ask by somebody else's page: under a name that was
// bound to this address (DNS rebinding), or from another origin. Programs send no Origin.
func CheckOrigin(r *http.Request, scheme string, serves func(host string) bool) error {
	if !serves(r.Host) {
		return fmt.Errorf("host %q is not served here", r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != scheme+"://"+r.Host {
		return fmt.Errorf("origin %q may not ask here", origin)
	}
	return nil
}

// Loopback says that a Host header names the loopback address, with or without a port.
func Loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "127.0.0.1" || host == "::1" || host == "[::1]" || host == "localhost"
}

// Secure sets the headers of what a browser may see: nothing but what comes from the same origin is
// loaded, run or asked, and nobody may show it inside of another page.
func Secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}
