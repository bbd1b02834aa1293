package facts

import (
	"slices"
	"testing"
)

// One that joins is down for a while after each attempt that ended: it must not wait for itself.
func TestMembersThatAreSeenDown(t *testing.T) {
	own := []int64{1}
	r := Ring{Endpoints: []Endpoint{
		{HostID: "up", Status: StatusNormal, Live: true, Tokens: own},
		{HostID: "down", Status: StatusNormal, Tokens: own},
		{HostID: "stopped", Status: StatusShutdown, Tokens: own},
		{HostID: "a member of old", Status: StatusUnknown, Tokens: own},
		{HostID: "joins", Status: StatusBootstrap, Tokens: own},
		{HostID: "has left", Status: StatusLeft, Tokens: own},
		{HostID: "heard of", Status: StatusNormal},
	}}
	if got, want := r.Down(), []string{"a member of old", "down", "stopped"}; !slices.Equal(got, want) {
		t.Errorf("down are %q, want %q", got, want)
	}
}
