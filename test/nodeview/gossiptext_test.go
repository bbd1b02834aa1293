package nodeview

import (
	"fmt"
	"strconv"
	"strings"
)

// rendered prints states as Cassandra does, with what the parser keeps of them.
func rendered(states []GossipState) string {
	var b strings.Builder
	for _, s := range states {
		fmt.Fprintf(&b, "/%s\n  generation:%d\n  heartbeat:%d\n", s.Endpoint, s.Generation, s.Heartbeat)
		line := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "  %s:1:%s\n", name, value)
			}
		}
		line("STATUS_WITH_PORT", strings.Join(append([]string{string(s.Status)}, s.StatusArguments...), ","))
		line("DC", s.Datacenter)
		line("RACK", s.Rack)
		line("HOST_ID", s.HostID)
		line("RELEASE_VERSION", s.ReleaseVersion)
		line("SCHEMA", s.SchemaVersion)
		if s.LoadBytes != 0 {
			line("LOAD", strconv.FormatInt(s.LoadBytes, 10))
		}
		if s.NativeTransportReady {
			line("RPC_READY", "true")
		}
		if s.InternalAddress.IsValid() {
			line("INTERNAL_ADDRESS_AND_PORT", s.InternalAddress.String())
		}
		if s.NativeAddress.IsValid() {
			line("NATIVE_ADDRESS_AND_PORT", s.NativeAddress.String())
		}
		if s.HasTokens {
			line("TOKENS", "<hidden>")
		}
	}
	return b.String()
}
