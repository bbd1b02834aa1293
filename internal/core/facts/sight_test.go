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

func TestOwnerOf(t *testing.T) {
	r := &Ring{Endpoints: []Endpoint{
		{HostID: "has left", Status: StatusLeft, Tokens: []int64{1}},
		{HostID: "a", Status: StatusNormal, Tokens: []int64{-50, 20}},
		{HostID: "b", Status: StatusNormal, Tokens: []int64{-10, 70}},
	}}
	for token, want := range map[int64]string{-60: "a", -50: "a", -49: "b", 0: "a", 20: "a", 21: "b", 70: "b", 71: "a"} {
		if got := r.OwnerOf(token); got == nil || got.HostID != want {
			t.Errorf("token %d is owned by %v, want %s", token, got, want)
		}
	}
	if got := (&Ring{}).OwnerOf(1); got != nil {
		t.Errorf("an empty ring has the owner %v", got)
	}
}
