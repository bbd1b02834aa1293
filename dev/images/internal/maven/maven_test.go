package maven

import (
	"reflect"
	"testing"

	"helenus.io/helenus/dev/images/internal/lock"
)

func TestParseList(t *testing.T) {
	text := "\nThe following files have been resolved:\n" +
		"   io.netty:netty-all:jar:4.1:compile:/repo/netty-all-4.1.jar -- module io.netty.all [auto]\n" +
		"   io.netty:epoll:jar:linux-x86_64:4.1:runtime:/repo/epoll-4.1-linux-x86_64.jar\n" +
		"   org.x:pom-only:pom:1:compile:/repo/x.pom\n" +
		"\x1b[36m   org.y:y:jar:2:compile:/repo/y-2.jar\x1b[m\n"
	got, err := parseList([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[lock.Coordinates]string{
		{Group: "io.netty", ID: "netty-all", Version: "4.1"}: "/repo/netty-all-4.1.jar",
		{Group: "io.netty", ID: "epoll", Version: "4.1",
			Classifier: "linux-x86_64"}: "/repo/epoll-4.1-linux-x86_64.jar",
		{Group: "org.y", ID: "y", Version: "2"}: "/repo/y-2.jar",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseListRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := parseList([]byte("   org.x:x:jar:1:provided:/repo/x-1.jar\n")); err == nil {
		t.Error("a line of unknown form was passed over")
	}
}

func TestFirstErrors(t *testing.T) {
	got := firstErrors([]byte("[INFO] x\n\x1b[1m[ERROR] no such artifact\x1b[m\n[ERROR] two\n[ERROR] three\n[ERROR] " +
		"four\n"))
	if want := "no such artifact; two; three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
