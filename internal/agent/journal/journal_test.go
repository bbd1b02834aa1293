package journal_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/agent/journal/memdisk"
)

var update = flag.Bool("update", false, "write the golden files anew")

func create(t testing.TB, now func() time.Time) (*journal.Journal, *memdisk.Disk) {
	t.Helper()
	disk := memdisk.New()
	j, err := journal.Create(disk, now, journal.Identity{ClusterUID: "u1", Node: "orders-dc1-r1-0"})
	if err != nil {
		t.Fatal(err)
	}
	return j, disk
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}

// TestTheFormatOnDiskIsKept: a journal of a released agent is read by all later ones.
func TestTheFormatOnDiskIsKept(t *testing.T) {
	j, disk := create(t, ticking())
	for _, change := range life {
		ok(t, change(j))
	}
	ok(t, j.AddReplaced("z", "a"))
	ok(t, j.Alive())
	ok(t, j.SetWindows(240*time.Hour, 3*time.Hour))
	ok(t, j.MarkFormed())
	ok(t, j.RecordEnd(journal.Restart{StartID: 1, StartedAt: start, EndedAt: start.Add(time.Hour), Code: 137, Reason: "killed"}))
	golden := filepath.Join("testdata", "journal.json")
	file := disk.Files()[journal.Path]
	if *update {
		ok(t, os.WriteFile(golden, []byte(file), 0o644))
	}
	want, err := os.ReadFile(golden)
	ok(t, err)
	if file != string(want) {
		t.Errorf("the format changed: raise it, and keep reading the former one.\ngot:  %swant: %s", file, want)
	}
}

func TestARealVolume(t *testing.T) {
	dir := t.TempDir()
	volume, err := journal.OpenVolume(dir)
	ok(t, err)
	defer func() { _ = volume.Close() }()
	if _, status, err := journal.Open(volume, time.Now); status != journal.Absent || err != nil {
		t.Fatalf("empty volume: %s, %v", status, err)
	}
	marker := journal.Marker{ClusterUID: "u1", Node: "n", Volume: "data", CreatedAt: start}
	ok(t, journal.CreateMarker(volume, marker))
	j, err := journal.Create(volume, time.Now, journal.Identity{ClusterUID: "u1", Node: "n"})
	ok(t, err)
	ok(t, j.UseAddress("10.0.0.1"))
	ok(t, j.UseAddress("10.0.0.2"))

	again, err := journal.OpenVolume(dir)
	ok(t, err)
	defer func() { _ = again.Close() }()
	read, status, err := journal.Open(again, time.Now)
	if status != journal.Valid || show(t, read.Content()) != show(t, j.Content()) {
		t.Errorf("read back: %s, %v", status, err)
	}
	if got, status, err := journal.ReadMarker(again); status != journal.Valid || got != marker {
		t.Errorf("marker read back: %s, %v, %+v", status, err, got)
	}
	if _, err := os.Stat(filepath.Join(dir, journal.PreviousPath)); err != nil {
		t.Errorf("previous version: %v", err)
	}
	if _, err := journal.OpenVolume(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing volume: %v", err)
	}
}

func TestAVolumeCannotLeadOutOfItself(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	ok(t, os.Symlink(outside, filepath.Join(dir, journal.Dir)))
	volume, err := journal.OpenVolume(dir)
	ok(t, err)
	defer func() { _ = volume.Close() }()
	if _, err := journal.Create(volume, time.Now, journal.Identity{ClusterUID: "u1", Node: "n"}); err == nil {
		t.Error("a journal was created through a link out of the volume")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// TestDamageIsNeverReadAsAJournal flips each byte and cuts at each length.
func TestDamageIsNeverReadAsAJournal(t *testing.T) {
	j, disk := create(t, ticking())
	ok(t, j.UseAddress("10.0.0.1"))
	file, want := []byte(disk.Files()[journal.Path]), show(t, j.Content())
	for at := range file {
		for _, mask := range []byte{0x01, 0x20, 0x80} {
			damaged := bytes.Clone(file)
			damaged[at] ^= mask
			disk.Put(journal.Path, damaged)
			if read, status, _ := journal.Open(disk, ticking()); status == journal.Valid && show(t, read.Content()) != want {
				t.Fatalf("byte %d ^ %#x was read as %s", at, mask, show(t, read.Content()))
			}
		}
		disk.Put(journal.Path, file[:at])
		// Only the newline at the end may be missing.
		if _, status, err := journal.Open(disk, ticking()); status != journal.Corrupt && at < len(file)-1 || status == journal.Corrupt && err == nil {
			t.Fatalf("cut at %d: %s, %v", at, status, err)
		}
	}
}

func TestWhatIsReadIsSaidPrecisely(t *testing.T) {
	_, disk := create(t, ticking())
	valid := disk.Files()[journal.Path]
	sealed := func(content string) string {
		return fmt.Sprintf(`{"format":1,"kind":"journal","checksum":%q,"content":%s}`, journal.Checksum([]byte(content)), content)
	}
	for name, c := range map[string]struct {
		file, previous string
		want           journal.Status
		message        string
	}{
		"nothing":               {"", "", journal.Absent, ""},
		"valid":                 {valid, "", journal.Valid, ""},
		"previous damaged":      {valid, "x", journal.Valid, ""},
		"only previous":         {"", valid, journal.Corrupt, "is gone while its previous version"},
		"only previous damaged": {"", "x", journal.Corrupt, "is gone while its previous version"},
		"damaged, previous":     {"x", valid, journal.Corrupt, "damaged"},
		"zeros":                 {"\x00\x00\x00", "", journal.Corrupt, "damaged"},
		"trailing":              {valid + "{}", "", journal.Corrupt, "damaged"},
		"newer":                 {`{"format":2,"anything":true}`, "", journal.Newer, "newer agent"},
		"format 0":              {`{}`, "", journal.Corrupt, "never existed"},
		"other kind":            {strings.Replace(valid, `"journal"`, `"marker"`, 1), "", journal.Corrupt, `is a "marker"`},
		"no owner":              {sealed(`{"sequence":1}`), "", journal.Corrupt, "names no node"},
		"unknown field":         {sealed(`{"identity":{"clusterUID":"u","node":"n"},"extra":1}`), "", journal.Corrupt, "wrong content"},
		"right content":         {sealed(`{"identity":{"clusterUID":"u","node":"n"}}`), "", journal.Valid, ""},
	} {
		disk := memdisk.New()
		for path, content := range map[string]string{journal.Path: c.file, journal.PreviousPath: c.previous} {
			if content != "" {
				disk.Put(path, []byte(content))
			}
		}
		j, status, err := journal.Open(disk, ticking())
		if status != c.want || (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) || (j != nil) != (status == journal.Valid) {
			t.Errorf("%s: %s, %v", name, status, err)
		}
		if _, err := journal.Create(disk, ticking(), journal.Identity{ClusterUID: "u", Node: "n"}); (err == nil) != (c.want == journal.Absent) {
			t.Errorf("%s: create: %v", name, err)
		}
	}
}

// unreadable answers every read with an error of the device.
type unreadable struct{ *memdisk.Disk }

func (unreadable) ReadFile(string) ([]byte, error) { return nil, errors.New("input/output error") }

func TestAnErrorOfTheVolumeIsNoAbsence(t *testing.T) {
	volume := unreadable{memdisk.New()}
	if _, status, err := journal.Open(volume, ticking()); status != journal.Unreadable || err == nil {
		t.Errorf("journal: %s, %v", status, err)
	}
	if _, status, err := journal.ReadMarker(volume); status != journal.Unreadable || err == nil {
		t.Errorf("marker: %s, %v", status, err)
	}
	_, err := journal.Create(volume, ticking(), journal.Identity{ClusterUID: "u", Node: "n"})
	refused(t, err, "input/output error")
	refused(t, journal.CreateMarker(volume, journal.Marker{ClusterUID: "u", Node: "n", Volume: "data"}), "input/output error")
}

func TestMarkers(t *testing.T) {
	mine := journal.Marker{ClusterUID: "u1", Node: "n", Volume: "data", CreatedAt: start}
	later, other := mine, mine
	later.CreatedAt, other.ClusterUID = start.Add(time.Hour), "u2"
	disk := memdisk.New()
	refused(t, journal.CreateMarker(disk, journal.Marker{ClusterUID: "u1", Node: "n"}), "must all be named")
	refused(t, journal.ReplaceMarker(disk, other, mine), "has no marker")
	ok(t, journal.CreateMarker(disk, mine))
	ok(t, journal.CreateMarker(disk, later))
	if got, _, _ := journal.ReadMarker(disk); got != mine {
		t.Errorf("a marker was written again: %+v", got)
	}
	refused(t, journal.CreateMarker(disk, other), "it is volume data of node n in cluster u1")
	refused(t, journal.ReplaceMarker(disk, journal.Marker{ClusterUID: "u3", Node: "n", Volume: "data"}, other), "it is volume data")
	ok(t, journal.ReplaceMarker(disk, mine, other))
	ok(t, journal.ReplaceMarker(disk, mine, other)) // again after a crash
	if got, _, _ := journal.ReadMarker(disk); got != other {
		t.Errorf("after adoption: %+v", got)
	}
	disk.Put(journal.MarkerPath, []byte("x"))
	refused(t, journal.CreateMarker(disk, mine), "damaged")
	refused(t, journal.ReplaceMarker(disk, other, mine), "damaged")
}

func TestIdentityIsNeverContradicted(t *testing.T) {
	j, _ := create(t, ticking())
	full := journal.Identity{ClusterName: "shop.orders", HostID: "h", Datacenter: "dc1", Rack: "r1"}
	ok(t, j.Identify(full))
	ok(t, j.Identify(journal.Identity{}))
	before := show(t, j.Content())
	for _, i := range []journal.Identity{{HostID: "other"}, {ClusterUID: "u2"}, {Node: "x"}, {Rack: "r2"}, {Datacenter: "dc2"}, {ClusterName: "x"}} {
		refused(t, j.Identify(i), "identify node")
	}
	refused(t, j.Adopt("u3", "u2"), "it is of cluster u1")
	refused(t, j.Adopt("u1", ""), "no cluster uid")
	if got := show(t, j.Content()); got != before {
		t.Errorf("changed to %s", got)
	}
	ok(t, j.Adopt("u1", "u2"))
	ok(t, j.Adopt("u1", "u2"))
	if got := j.Content().Identity; got.ClusterUID != "u2" || got.HostID != "h" {
		t.Errorf("adopted: %+v", got)
	}
}

func TestJoinTickets(t *testing.T) {
	ticket := journal.Join{ID: "t1", Mode: journal.JoinNew, Tokens: []int64{1}}
	t.Run("begins once and goes on", func(t *testing.T) {
		j, _ := create(t, ticking())
		refused(t, j.FinishJoin("t1"), "no join on ticket t1 began")
		ok(t, j.BeginJoin(ticket))
		began := j.Content().Join.StartedAt
		ok(t, j.BeginJoin(ticket))
		refused(t, j.BeginJoin(journal.Join{ID: "t2", Mode: journal.JoinBootstrap}), "began to join on ticket t1")
		if withdrawn, err := j.WithdrawJoin("t1"); withdrawn || err != nil {
			t.Errorf("a ticket that began was withdrawn: %v, %v", withdrawn, err)
		}
		ok(t, j.FinishJoin("t1"))
		finished := j.Content().Join.FinishedAt
		ok(t, j.FinishJoin("t1"))
		if got := j.Content().Join; !got.StartedAt.Equal(began) || !got.FinishedAt.Equal(finished) || finished.IsZero() {
			t.Errorf("join %+v", got)
		}
		refused(t, j.ForgetMembership(), "is or was a member")
	})
	t.Run("withdrawn never begins", func(t *testing.T) {
		j, disk := create(t, ticking())
		for range 2 {
			if withdrawn, err := j.WithdrawJoin("t1"); !withdrawn || err != nil {
				t.Errorf("withdraw: %v, %v", withdrawn, err)
			}
		}
		j, _, err := journal.Open(disk, ticking())
		ok(t, err)
		refused(t, j.BeginJoin(ticket), "was withdrawn")
		ok(t, j.BeginJoin(journal.Join{ID: "t2", Mode: journal.JoinBootstrap}))
	})
	t.Run("New is refused after traffic or formation", func(t *testing.T) {
		for name, change := range map[string]func(*journal.Journal) error{"traffic": (*journal.Journal).OpenTraffic, "formed": (*journal.Journal).MarkFormed} {
			j, _ := create(t, ticking())
			ok(t, change(j))
			if err := j.BeginJoin(ticket); err == nil {
				t.Errorf("New after %s", name)
			}
			refused(t, j.ForgetMembership(), "is or was a member")
		}
	})
	t.Run("malformed", func(t *testing.T) {
		j, _ := create(t, ticking())
		refused(t, j.BeginJoin(journal.Join{Mode: journal.JoinNew}), "no id")
		refused(t, j.BeginJoin(journal.Join{ID: "t", Mode: "Move"}), "none of New, Bootstrap, Replace")
	})
	t.Run("a wiped disk never joins on the same ticket", func(t *testing.T) {
		j, _ := create(t, ticking())
		ok(t, j.BeginJoin(journal.Join{ID: "t1", Mode: journal.JoinBootstrap}))
		ok(t, j.Identify(journal.Identity{HostID: "h1"}))
		ok(t, j.ForgetMembership())
		refused(t, j.BeginJoin(ticket), "was withdrawn")
		ok(t, j.Identify(journal.Identity{HostID: "h2"}))
	})
}

func TestIntentsAreRememberedAsLongAsTheirSlotCanHoldThem(t *testing.T) {
	j, _ := create(t, ticking())
	if _, began, err := j.Begin("restart", "r1"); err != nil || !began {
		t.Fatalf("begin: %v, %v", began, err)
	}
	if finished, err := j.Finish("restart", "r1", journal.Succeeded, "done"); err != nil || !finished {
		t.Fatalf("finish: %v, %v", finished, err)
	}
	if finished, err := j.Finish("restart", "r1", journal.Failed, "no"); err != nil || finished {
		t.Errorf("finished twice: %v, %v", finished, err)
	}
	// A hundred operations later the restart is still in the record.
	for i := range 100 {
		id := fmt.Sprint("o", i)
		_, began, err := j.Begin("operation", id)
		ok(t, err)
		if !began {
			t.Fatalf("%s did not begin", id)
		}
		_, err = j.Finish("operation", id, journal.Failed, strings.Repeat("é", 4096))
		ok(t, err)
	}
	intent, began, err := j.Begin("restart", "r1")
	if err != nil || began || intent.Outcome != journal.Succeeded || intent.Message != "done" {
		t.Errorf("the restart began again: %v, %v, %+v", began, err, intent)
	}
	if n := len(j.Content().Intents); n != journal.KeptDonePerSlot+1 {
		t.Errorf("%d intents are kept", n)
	}
	if _, known := j.Intent("operation", "o99"); !known {
		t.Error("the last operation is forgotten")
	}
}

func TestIntentsThatDoNotFit(t *testing.T) {
	j, _ := create(t, ticking())
	_, err := j.Finish("operation", "o", journal.Succeeded, "")
	refused(t, err, "never began")
	_, _, err = j.Begin("", "o")
	refused(t, err, "no slot or no id")
	_, err = j.Withdraw("operation", "", "")
	refused(t, err, "no slot or no id")
	withdrawn, err := j.Withdraw("operation", "o1", "not after")
	ok(t, err)
	if intent, began, err := j.Begin("operation", "o1"); began || err != nil || intent != withdrawn || intent.Outcome != journal.Withdrawn {
		t.Errorf("a withdrawn intent began: %v, %v, %+v", began, err, intent)
	}
	for i := range journal.MaxRunningIntents {
		_, _, err := j.Begin("operation", fmt.Sprint("running", i))
		ok(t, err)
	}
	_, _, err = j.Begin("operation", "one more")
	refused(t, err, "are running")
	if intent, err := j.Withdraw("operation", "running0", ""); err != nil || intent.Done() {
		t.Errorf("a running intent was withdrawn: %v, %+v", err, intent)
	}
	_, err = j.Finish("operation", "running0", journal.Withdrawn, "")
	refused(t, err, "none of Succeeded, Failed, Interrupted")
}

func TestStartIDsOnlyRise(t *testing.T) {
	j, disk := create(t, ticking())
	for i, c := range []struct{ used, want uint64 }{{0, 1}, {1, 2}, {0, 3}, {40, 41}, {7, 42}} {
		id, err := j.BeginStart(c.used, "h")
		if err != nil || id != c.want {
			t.Errorf("start %d: %d, %v, want %d", i, id, err, c.want)
		}
		if j, _, err = journal.Open(disk, ticking()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRestartsAreKeptOnceAndBounded(t *testing.T) {
	j, _ := create(t, ticking())
	for i := range journal.KeptRestarts + 5 {
		for range 2 {
			ok(t, j.RecordEnd(journal.Restart{StartID: uint64(i), StartedAt: start, EndedAt: start.Add(time.Minute), Code: 3, Reason: strings.Repeat("x", 9999)}))
		}
	}
	got := j.Content().Restarts
	if len(got) != journal.KeptRestarts || got[0].StartID != 5 || len(got[0].Reason) > 3000 {
		t.Errorf("%d restarts from %d, reason of %d bytes", len(got), got[0].StartID, len(got[0].Reason))
	}
}

func TestWhatIsNoChangeIsNotWritten(t *testing.T) {
	now := start
	j, disk := create(t, func() time.Time { return now })
	peers := []journal.Peer{{Node: "b", HostID: "hb", Address: "10.0.0.2"}, {Node: "a", HostID: "ha", Address: "10.0.0.3"}}
	ok(t, j.UseAddress("10.0.0.1"))
	ok(t, j.SeePeers(peers))
	ok(t, j.OpenTraffic())
	ok(t, j.AddReplaced("r"))
	ok(t, j.Alive())
	steps := disk.Steps()
	for range 100 {
		now = now.Add(time.Second)
		slices.Reverse(peers)
		ok(t, j.UseAddress("10.0.0.1"))
		ok(t, j.SeePeers(peers))
		ok(t, j.OpenTraffic())
		ok(t, j.AddReplaced("r", ""))
		ok(t, j.Alive())
	}
	if got := disk.Steps(); got != steps {
		t.Errorf("%d steps were taken", got-steps)
	}
	now = start.Add(journal.AliveInterval)
	ok(t, j.Alive())
	if got := j.Content().AliveUntil; !got.Equal(now) {
		t.Errorf("alive until %s, want %s", got, now)
	}
	now = start // the clock was set back
	ok(t, j.Alive())
	if got := j.Content().AliveUntil; !got.Equal(now) {
		t.Errorf("after the clock went back: alive until %s, want %s", got, now)
	}
}

func TestAddressesOfPeersAreKeptAsLongAsTheRingKeepsThem(t *testing.T) {
	now := start
	j, _ := create(t, func() time.Time { return now })
	ok(t, j.Identify(journal.Identity{HostID: "me"}))
	owners := func(address string) (ids []string) {
		for _, p := range j.Content().Owners(address, now) {
			ids = append(ids, p.HostID)
		}
		return ids
	}
	expect := func(address string, want ...string) {
		t.Helper()
		if got := owners(address); !slices.Equal(got, want) {
			t.Errorf("owners of %s: %v, want %v", address, got, want)
		}
	}
	ok(t, j.SeePeers([]journal.Peer{{Node: "a", HostID: "ha", Address: "1.1.1.1"}, {Node: "self", HostID: "me", Address: "9.9.9.9"}}))
	now = now.Add(24 * time.Hour) // away or not: it still owns its address
	expect("1.1.1.1", "ha")
	expect("9.9.9.9")
	ok(t, j.SeePeers([]journal.Peer{{Node: "a", HostID: "ha", Address: "2.2.2.2", Agent: "2.2.2.2:7780"}}))
	expect("1.1.1.1", "ha")
	expect("2.2.2.2", "ha")
	now = now.Add(journal.AddressMemory - time.Second)
	expect("1.1.1.1", "ha")
	now = now.Add(time.Second)
	expect("1.1.1.1")
	ok(t, j.ForgetPeers("ha", "unknown"))
	expect("2.2.2.2", "ha")
	now = now.Add(journal.AddressMemory)
	expect("2.2.2.2")
	ok(t, j.SeePeers(nil))
	if got := j.Content().Peers; len(got) != 1 {
		t.Errorf("peers that left are kept: %+v", got)
	}
	refused(t, j.SeePeers([]journal.Peer{{Node: "x", Address: "3.3.3.3"}}), "no host id")
}

func TestOwnAddresses(t *testing.T) {
	now := start
	j, _ := create(t, func() time.Time { return now })
	for i := range journal.KeptAddresses + 3 {
		now = now.Add(time.Minute)
		ok(t, j.UseAddress(fmt.Sprint("10.0.0.", i)))
	}
	got := j.Content().Addresses
	if len(got) != journal.KeptAddresses || !got[len(got)-1].Until.IsZero() || !got[0].Until.Equal(got[1].From) {
		t.Errorf("%d addresses: %+v", len(got), got)
	}
}

func TestWindows(t *testing.T) {
	j, _ := create(t, ticking())
	refused(t, j.SetWindows(-1, 0), "must not be negative")
	ok(t, j.SetWindows(time.Hour, time.Minute))
	if c := j.Content(); c.SmallestGCGraceSeconds != 3600 || c.HintWindowSeconds != 60 {
		t.Errorf("windows %d, %d", c.SmallestGCGraceSeconds, c.HintWindowSeconds)
	}
}

func TestContentIsACopy(t *testing.T) {
	j, _ := create(t, ticking())
	ok(t, j.AddReplaced("a", "b"))
	c := j.Content()
	c.Replaced[0] = "changed"
	if got := j.Content().Replaced[0]; got != "a" {
		t.Errorf("the journal changed to %q", got)
	}
}

// TestRandomLives: whatever is called in whatever order, with the agent replaced at any time, the journal stays readable
// and keeps what it promises never to take back.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := memdisk.New()
		j, err := journal.Create(disk, ticking(), journal.Identity{ClusterUID: "u", Node: "n"})
		if err != nil {
			t.Fatal(err)
		}
		id := rapid.SampledFrom([]string{"a", "b", "c"})
		began := map[string]int{}
		before := j.Content()
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				i := id.Draw(t, "id")
				if _, fresh, err := j.Begin("operation", i); fresh && err == nil {
					began[i]++
				}
			},
			"finish":   func(t *rapid.T) { _, _ = j.Finish("operation", id.Draw(t, "id"), journal.Succeeded, "") },
			"withdraw": func(t *rapid.T) { _, _ = j.Withdraw("operation", id.Draw(t, "id"), "") },
			"join": func(t *rapid.T) {
				_ = j.BeginJoin(journal.Join{ID: id.Draw(t, "id"), Mode: rapid.SampledFrom([]journal.JoinMode{journal.JoinNew, journal.JoinBootstrap}).Draw(t, "mode")})
			},
			"joined":       func(t *rapid.T) { _ = j.FinishJoin(id.Draw(t, "id")) },
			"withdrawJoin": func(t *rapid.T) { _, _ = j.WithdrawJoin(id.Draw(t, "id")) },
			"forget":       func(*rapid.T) { _ = j.ForgetMembership() },
			"open":         func(*rapid.T) { _ = j.OpenTraffic() },
			"formed":       func(*rapid.T) { _ = j.MarkFormed() },
			"start":        func(t *rapid.T) { _, _ = j.BeginStart(rapid.Uint64Range(0, 9).Draw(t, "used"), "") },
			"replaced":     func(t *rapid.T) { _ = j.AddReplaced(id.Draw(t, "id")) },
			"identify":     func(t *rapid.T) { _ = j.Identify(journal.Identity{HostID: id.Draw(t, "id")}) },
			"restart": func(t *rapid.T) {
				outcomes := append(disk.PowerLoss(), disk.Kill())
				disk = outcomes[rapid.IntRange(0, len(outcomes)-1).Draw(t, "outcome")]
				var status journal.Status
				if j, status, err = journal.Open(disk, ticking()); status != journal.Valid {
					t.Fatalf("%s: %v", status, err)
				}
			},
			"": func(t *rapid.T) {
				now := j.Content()
				switch {
				case before.TrafficOpened && !now.TrafficOpened, before.Formed && !now.Formed:
					t.Fatalf("taken back: %+v", now)
				case now.LastStartID < before.LastStartID, now.Sequence < before.Sequence:
					t.Fatalf("went back: %+v", now)
				case !isSubset(before.Replaced, now.Replaced), !isSubset(before.Withdrawn, now.Withdrawn):
					t.Fatalf("forgotten: %+v after %+v", now, before)
				case now.Join != nil && slices.Contains(now.Withdrawn, now.Join.ID):
					t.Fatalf("joins on a withdrawn ticket: %+v", now)
				}
				for i, times := range began {
					if times > 1 {
						t.Fatalf("%s began %d times", i, times)
					}
				}
				before = now
			},
		})
	})
}

func isSubset(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(whole, s) })
}

// FuzzOpen: nothing that lies on a volume makes the reader fail, and what it takes as valid it writes back as the same.
func FuzzOpen(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "journal.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden, true)
	f.Add([]byte(`{"identity":{"clusterUID":"u","node":"n"},"intents":[{"slot":"s","id":"i"}],"aliveUntil":"2026-03-01T10:00:00+01:00"}`), true)
	f.Add([]byte(`{"format":2}`), false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, file []byte, seal bool) {
		if seal { // past the checksum, which no fuzzer guesses
			file = []byte(fmt.Sprintf(`{"format":1,"kind":"journal","checksum":%q,"content":%s}`, journal.Checksum(bytes.TrimSpace(file)), file))
		}
		disk := memdisk.New()
		disk.Put(journal.Path, file)
		j, status, err := journal.Open(disk, ticking())
		if (status == journal.Valid) != (err == nil) {
			t.Fatalf("%s, %v", status, err)
		}
		if status != journal.Valid {
			return
		}
		if err := j.UseAddress("192.0.2.1"); err != nil {
			t.Skip(err)
		}
		again, status, err := journal.Open(disk, ticking())
		if status != journal.Valid || show(t, again.Content()) != show(t, j.Content()) {
			t.Fatalf("written back: %s, %v", status, err)
		}
	})
}
