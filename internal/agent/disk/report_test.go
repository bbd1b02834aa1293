package disk

import (
	"archive/zip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const localDir = "data/system/local-7ad54392bcdd35a684174e047860b377/"

// volume reads the files of system.local that a real Cassandra wrote (testdata/README.md).
func volume(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	archive, err := zip.OpenReader("testdata/" + name + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	files := fstest.MapFS{}
	for _, file := range archive.File {
		content, err := archive.Open(file.Name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		files[file.Name] = &fstest.MapFile{Data: data}
	}
	return files
}

func inspect(files fstest.MapFS) Report { return Inspect(files, DefaultLayout()) }

// TestRealVolumes: what Cassandra wrote in each state, in each format.
func TestRealVolumes(t *testing.T) {
	const member = "31c9f114-fbd8-4625-b28b-8a702f26ed26"
	memberTokens := []int64{-5798154800672674894, -2758537220250917179, -1075125233271548505, 4283670738530962859}
	for name, want := range map[string]struct {
		word   Bootstrapped
		hostID string
		tokens []int64
		read   int // SSTables
		left   int // of unfinished or replaced
	}{
		"4.1-nb-compaction-committed": {Completed, "", nil, 1, 5},
		"4.1-nb-compacted":            {Completed, "", nil, 1, 0},
		"5.0-nb-in-progress": {InProgress, "926bd045-1389-490f-9f16-7019c9876710",
			[]int64{-6671240986903998330, -3540086380319327067, -616503625612164818, 8121532316075315070}, 7, 0},
		"5.0-nb-completed": {Completed, "d1b50004-34a3-4de5-968f-b4f28d4a8f76",
			[]int64{-8579261235531673697, -6992130444453220153, -2478546727706529608, 7334233067036351352}, 1, 0},
		"5.0-nb-compaction-committed": {Completed, member, memberTokens, 1, 6},
		"5.0-nb-needs-bootstrap":      {NeedsBootstrap, member, memberTokens, 2, 0},
		"5.0-nb-decommissioned":       {Decommissioned, member, memberTokens, 3, 0},
		"5.0-nb-uncompressed": {Completed, "1891933f-b799-438b-a1e7-1692fc30f932", nil, 7,
			0},
		"5.0-oa-uuid-completed": {Completed, "07bd0f9b-1898-4d7d-844c-3efaf4c7ba29", nil, 1,
			0},
		"5.0-oa-uuid-compaction-open": {Completed, "07bd0f9b-1898-4d7d-844c-3efaf4c7ba29", nil, 7,
			1},
		"5.0-da-uuid-compaction-open": {Completed, "3712dfd0-2e71-4be0-bc92-486dc9d656bf",
			[]int64{-3763945464220857689, -21285751212754795, 7983270531727641295, 9098883970803718702}, 7, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := inspect(volume(t, name))
			if r.Problem != "" || r.Local == nil {
				t.Fatalf("problem %q", r.Problem)
			}
			l := *r.Local
			if l.Bootstrapped != want.word || l.ClusterName != "shop.orders" {
				t.Errorf("read %+v", l)
			}
			if want.hostID != "" && l.HostID != want.hostID || len(l.HostID) != 36 {
				t.Errorf("host id %s", l.HostID)
			}
			if want.tokens != nil && !slices.Equal(l.Tokens, want.tokens) || len(l.Tokens) != 4 {
				t.Errorf("tokens %v", l.Tokens)
			}
			if l.GossipGeneration < 1_700_000_000 {
				t.Errorf("gossip generation %d", l.GossipGeneration)
			}
			if len(r.SSTables) != want.read || len(r.Unfinished) != want.left {
				t.Errorf("read %v, left out %v", r.SSTables, r.Unfinished)
			}
			if r.Empty() {
				t.Error("the volume counts as empty")
			}
		})
	}
}

// TestTheOrderOfGenerationsDoesNotMatter gives the SSTables of a leaver other numbers.
func TestTheOrderOfGenerationsDoesNotMatter(t *testing.T) {
	renumbered := fstest.MapFS{}
	for name, file := range volume(t, "5.0-nb-decommissioned") {
		for from, to := range map[string]string{"nb-9-": "nb-30-", "nb-10-": "nb-21-", "nb-11-": "nb-2-"} {
			if strings.Contains(name, from) {
				renumbered[strings.Replace(name, from, to, 1)] = file
			}
		}
	}
	if r := inspect(renumbered); r.Problem != "" || r.Local.Bootstrapped != Decommissioned || len(r.SSTables) != 3 {
		t.Errorf("%+v, problem %q", r.Local, r.Problem)
	}
}

// TestDamageIsSeen flips bytes of what is read, and cuts files at any length: either it is noticed,
// or it was in a part that is not read and the answer is the same.
func TestDamageIsSeen(t *testing.T) {
	for _, name := range []string{"5.0-nb-completed", "5.0-oa-uuid-completed"} {
		files := volume(t, name)
		want := *inspect(files).Local
		for file, whole := range files {
			noticed, tried := 0, 0
			stride := 1 + len(whole.Data)/500 // Statistics.db is long, and one part of it is read
			for at := 0; at < len(whole.Data); at += stride {
				flipped := slices.Clone(whole.Data)
				flipped[at] ^= 0x41
				for _, damaged := range [][]byte{flipped, whole.Data[:at]} {
					files[file] = &fstest.MapFile{Data: damaged}
					tried++
					r := inspect(files)
					if r.Problem != "" {
						noticed++
						continue
					}
					if r.Local == nil || !same(*r.Local, want) {
						t.Fatalf("%s damaged at %d was read as %+v", file, at, r.Local)
					}
				}
			}
			files[file] = whole
			if strings.HasSuffix(file, dataSuffix) && noticed != tried {
				t.Errorf("%s: %d of %d damages were noticed", file, noticed, tried)
			}
		}
	}
}

func same(a, b Local) bool {
	tokens := slices.Equal(a.Tokens, b.Tokens)
	a.Tokens, b.Tokens = nil, nil
	return tokens && a.Bootstrapped == b.Bootstrapped && a.HostID == b.HostID && a.ClusterName == b.ClusterName
}

func TestIncompleteTables(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fstest.MapFS)
		want   string
	}{
		"no Statistics.db": {func(v fstest.MapFS) { delete(v, localDir+"nb-8-big-Statistics.db") },
			"file does not exist"},
		"no CompressionInfo.db": {func(v fstest.MapFS) { delete(v, localDir+"nb-8-big-CompressionInfo.db") },
			"read rows"},
		"empty Data.db": {func(v fstest.MapFS) { v[localDir+"nb-8-big-Data.db"] = &fstest.MapFile{} },
			"checksum of Data.db"},
		"other name": {func(v fstest.MapFS) { v[localDir+"backup-Data.db"] = &fstest.MapFile{} },
			"version-id-format"},
		"too old": {func(v fstest.MapFS) { v[localDir+"md-3-big-Data.db"] = &fstest.MapFile{} },
			"format big, version md is not supported"},
		"unknown format": {func(v fstest.MapFS) { v[localDir+"aa-3-row-Data.db"] = &fstest.MapFile{} },
			"format row, version aa is not supported"},
		"two tables": {func(v fstest.MapFS) { v["data/system/local-0/x"] = &fstest.MapFile{} },
			"system.local has 2 directories"},
		"huge Data.db": {func(v fstest.MapFS) {
			v[localDir+"nb-8-big-Data.db"].Data = make([]byte, maxFileBytes+1)
		}, "more than"},
		"another compressor": {func(v fstest.MapFS) {
			replace(v, "nb-8-big-CompressionInfo.db", "LZ4Compressor", "ZZZCompressor")
		}, "compressed with ZZZCompressor"},
		"snapshots and backups": {func(v fstest.MapFS) { v[localDir+"backups/nb-9-big-Data.db"] = &fstest.MapFile{} },
			""},
		"a later version letter": {func(v fstest.MapFS) { rename(v, "nb-8-big", "nz-8-big") }, ""},
	} {
		files := volume(t, "5.0-nb-completed")
		c.change(files)
		if r := inspect(files); (r.Problem == "") != (c.want == "") || !strings.Contains(r.Problem, c.want) {
			t.Errorf("%s: problem %q, want %q", name, r.Problem, c.want)
		}
	}
}

func replace(v fstest.MapFS, file, from, to string) {
	f := v[localDir+file]
	f.Data = []byte(strings.Replace(string(f.Data), from, to, 1))
}

func rename(v fstest.MapFS, from, to string) {
	for name, file := range v {
		if strings.Contains(name, from) {
			delete(v, name)
			v[strings.Replace(name, from, to, 1)] = file
		}
	}
}

// Lines that Cassandra 5.0.6 wrote.
const (
	added     = "ADD:[/var/lib/cassandra/data/system/local-7ad54392bcdd35a684174e047860b377/nb-3-big-,0,8][2243906144]\n"
	addedToo  = "ADD:[/var/lib/cassandra/data/system/local-7ad54392bcdd35a684174e047860b377/nb-1-big-,0,8][1635470109]\n"
	committed = "COMMIT:[,0,0][2613697770]\n"
)

func TestTransactionLogs(t *testing.T) {
	removed := strings.Replace(added, "ADD", "REMOVE", 1)
	removed = strings.Replace(removed, "2243906144", checksumOf(t, removed), 1)
	for name, c := range map[string]struct {
		log  string
		want []string
	}{
		"empty":                       {"", nil},
		"open":                        {added + addedToo, []string{"nb-3-big", "nb-1-big"}},
		"committed":                   {added + committed, nil},
		"committed, line cut off":     {added + committed[:len(committed)-4], []string{"nb-3-big"}},
		"committed, damaged":          {added + strings.Replace(committed, "261", "262", 1), []string{"nb-3-big"}},
		"added, damaged":              {strings.Replace(added, "nb-3", "nb-4", 1), nil},
		"replaced, committed":         {removed + addedToo + committed, []string{"nb-3-big"}},
		"replaced, open":              {removed + addedToo, []string{"nb-1-big"}},
		"aborted":                     {addedToo + "ABORT:[,0,0][1]\n", []string{"nb-1-big"}},
		"junk":                        {"\x00\x00 ADD:[x]\n", nil},
		"a number that does not fit":  {strings.Replace(added, ",0,8]", ",99999999999999999999,8]", 1), nil},
		"a count that does not fit":   {strings.Replace(added, ",0,8]", ",0,99999999999]", 1), nil},
		"committed without newline":   {added + strings.TrimSpace(committed), nil},
		"two lines for the same file": {added + added, []string{"nb-3-big", "nb-3-big"}},
	} {
		if got := leftOut(c.log); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// checksumOf finds the checksum of a line, which differs from a real one only in its type.
func checksumOf(t *testing.T, line string) string {
	t.Helper()
	m := record.FindStringSubmatch(strings.TrimSpace(line))
	return logChecksum(m[1], m[2], 0, 8)
}

// TestAnUnfinishedFlushIsLeftOut: Data.db is there in part, and the log says that nobody finished
// it.
func TestAnUnfinishedFlushIsLeftOut(t *testing.T) {
	files := volume(t, "5.0-nb-completed")
	files[localDir+"nb-3-big-Data.db"] = &fstest.MapFile{Data: []byte("part")}
	if r := inspect(files); !strings.Contains(r.Problem, "nb-3-big") {
		t.Errorf("without a log: %q", r.Problem)
	}
	files[localDir+"nb_txn_flush_60a3ba50-e53b-11f1-a3f1-cf25d6627fb0.log"] = &fstest.MapFile{Data: []byte(added)}
	if r := inspect(files); r.Problem != "" || r.Local.Bootstrapped != Completed ||
		!slices.Equal(r.Unfinished, []string{"nb-3-big"}) {
		t.Errorf("with a log: %+v", r)
	}
}

func TestVolumesWithoutSystemLocal(t *testing.T) {
	dir := &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	file := &fstest.MapFile{Data: make([]byte, 10)}
	for name, c := range map[string]struct {
		files fstest.MapFS
		empty bool
		check func(Report) bool
	}{
		"nothing": {fstest.MapFS{}, true, func(r Report) bool { return r.Keyspaces == nil }},
		"fresh file system": {fstest.MapFS{"lost+found": dir, ".helenus/volume.json": file}, true,
			func(r Report) bool { return r.Strangers == nil }},
		"empty directories": {fstest.MapFS{"data/system/local-7ad54392bcdd35a684174e047860b377": dir, "commitlog": dir,
			"hints": dir}, true, func(r Report) bool { return len(r.Keyspaces) == 1 }},
		"strangers": {fstest.MapFS{"photos": dir, "notes.txt": file}, false,
			func(r Report) bool { return slices.Equal(r.Strangers, []string{"notes.txt", "photos"}) }},
		"data of a keyspace": {fstest.MapFS{"data/shop/orders-1/nb-1-big-Data.db": file}, false,
			func(r Report) bool { return r.Keyspaces[0] == Keyspace{"shop", true} }},
		"a commit log": {fstest.MapFS{"commitlog/CommitLog-7-1.log": file, "commitlog/CommitLog-7-2.log": file,
			"commitlog/CommitLog-7-2_cdc.idx": file}, false,
			func(r Report) bool { return r.Segments == 2 }},
	} {
		r := inspect(c.files)
		if r.Problem != "" || r.Local != nil || r.Empty() != c.empty || !c.check(r) {
			t.Errorf("%s: empty %v, %+v", name, r.Empty(), r)
		}
	}
}

func TestOtherLayouts(t *testing.T) {
	files := fstest.MapFS{}
	for name, file := range volume(t, "5.0-nb-completed") {
		files["ssd1/"+strings.TrimPrefix(name, "data/")] = file
	}
	files["ssd2/shop/orders-1/nb-1-big-Data.db"] = &fstest.MapFile{}
	files["ssd1/shop/orders-1/backups"] = &fstest.MapFile{Mode: fs.ModeDir}
	r := Inspect(files, Layout{Data: []string{"ssd1", "ssd2"}})
	if r.Problem != "" || r.Local == nil || r.Strangers != nil ||
		!slices.Equal(r.Keyspaces, []Keyspace{{"shop", true}, {"system", true}}) {
		t.Errorf("%+v", r)
	}
	if r := Inspect(files, Layout{}); !strings.Contains(r.Problem, "no data directory") || r.Empty() {
		t.Errorf("no layout: %+v", r)
	}
}

// failing answers with an error of the device for one name.
type failing struct {
	fs.FS
	name string
}

var errDevice = errors.New("input/output error")

func (f failing) Open(name string) (fs.File, error) {
	if path.Clean(name) == f.name {
		return nil, errDevice
	}
	return f.FS.Open(name)
}

func TestErrorsOfTheVolumeAreProblems(t *testing.T) {
	files := volume(t, "5.0-nb-completed")
	files["commitlog/CommitLog-7-1.log"] = &fstest.MapFile{}
	files["data/shop/orders-1/nb-1-big-Data.db"] = &fstest.MapFile{}
	files[localDir+"nb_txn_flush_1.log"] = &fstest.MapFile{}
	for _, name := range []string{
		".", "commitlog", "data", "data/shop", "data/shop/orders-1", "data/system", path.Clean(localDir),
		localDir + "nb_txn_flush_1.log",
		localDir + "nb-8-big-Data.db", localDir + "nb-8-big-Statistics.db", localDir + "nb-8-big-CompressionInfo.db",
		localDir + "nb-8-big-Digest.crc32",
	} {
		if r := Inspect(failing{files, name}, DefaultLayout()); !strings.Contains(r.Problem, errDevice.Error()) ||
			r.Local != nil || r.Empty() {
			t.Errorf("%s: problem %q, local %+v", name, r.Problem, r.Local)
		}
	}
}

func TestLocalThatMakesNoSense(t *testing.T) {
	for want, cells := range map[string]map[string]map[string][]byte{
		"none of the words":         {"bootstrapped": {"": []byte("MAYBE")}},
		"host_id has 3 bytes":       {"host_id": {"": []byte("abc")}},
		"gossip_generation has 8":   {"gossip_generation": {"": make([]byte, 8)}},
		"none of Murmur3Partitione": {"tokens": {"0xff": nil}},
	} {
		if _, err := decodeLocal(cells); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTombstonesAndTimestamps: how Cassandra reconciles cells.
func TestTombstonesAndTimestamps(t *testing.T) {
	at := [2]string{"c", ""}
	value := func(v string, timestamp int64) cell { return cell{value: []byte(v), timestamp: timestamp} }
	dead := func(timestamp int64) cell { return cell{timestamp: timestamp, tombstone: true} }
	for name, c := range map[string]struct {
		cells   []cell
		deleted map[string]int64
		want    string
	}{
		"newer wins":                         {[]cell{value("old", 1), value("new", 2)}, nil, "new"},
		"equal: the greater value wins":      {[]cell{value("b", 1), value("a", 1)}, nil, "b"},
		"tombstone":                          {[]cell{value("a", 1), dead(2)}, nil, ""},
		"equal: the tombstone wins":          {[]cell{dead(1), value("z", 1)}, nil, ""},
		"older tombstone":                    {[]cell{dead(1), value("a", 2)}, nil, "a"},
		"row deleted":                        {[]cell{value("a", 2)}, map[string]int64{"": 2}, ""},
		"row deleted before":                 {[]cell{value("a", 3)}, map[string]int64{"": 2}, "a"},
		"column deleted":                     {[]cell{value("a", 2)}, map[string]int64{"c": 5}, ""},
		"other column deleted":               {[]cell{value("a", 2)}, map[string]int64{"d": 5}, "a"},
		"row deleted later than this column": {[]cell{value("a", 2)}, map[string]int64{"c": 1, "": 3}, ""},
	} {
		for range 2 { // in both orders
			var p partition
			for _, cell := range c.cells {
				p.add(at, cell)
			}
			for column, upTo := range c.deleted {
				p.delete(column, upTo)
				p.delete(column, upTo-1)
			}
			if got := string(p.live()["c"][""]); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
			slices.Reverse(c.cells)
		}
	}
}

func TestTheSizesOfSSTables(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"t-1/nb-1-big-Data.db", "t-1/nb-1-big-Index.db", "u-2/da-7-bti-Data.db",
		"u-2/snapshots/s/nb-1-big-Data.db", "u-2/.index/nb-1-big-Data.db"} {
		files["data/shop/"+name] = &fstest.MapFile{Data: []byte(name)}
		files["data/other/"+name] = &fstest.MapFile{Data: []byte("x")}
	}
	want := map[string][]int64{"t": {int64(len("t-1/nb-1-big-Data.db"))}, "u": {int64(len("u-2/da-7-bti-Data.db"))}}
	if got, err := SSTables(files, DefaultLayout(), "shop"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("sizes %v, want %v, error %v", got, want, err)
	}
}

// TestWipedRowsLeaveWhoTheNodeIs removes from a real disk, in the middle of a join, all but the
// tables that say who the node is.
func TestWipedRowsLeaveWhoTheNodeIs(t *testing.T) {
	files := volume(t, "5.0-nb-in-progress")
	before := inspect(files)
	const table = "-5cb1f5c0000011f0a0e0000000000000/nb-1-big-Data.db"
	gone := []string{"data/shop/orders" + table, "data/shop/orders-5cb1f5c0/snapshots/s/nb-1-big-Data.db",
		"data/system_auth/roles" + table, "data/system/paxos" + table, "data/system/batches" + table,
		"commitlog/CommitLog-7-1.log", "hints/x.hints", "saved_caches/x.db", "cdc_raw/x.log", ".helenus/hashes"}
	stay := []string{"data/system/peers_v2" + table, "data/system_schema/tables" + table, ".helenus/journal", "else/x"}
	for _, name := range slices.Concat(gone, stay) {
		files[name] = &fstest.MapFile{Data: []byte("x")}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for range 2 { // again is harmless
		if err := WipeRows(root, DefaultLayout()); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range gone {
		if _, err := root.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	for _, name := range stay {
		if _, err := root.Stat(name); err != nil {
			t.Error(err)
		}
	}
	after := Inspect(root.FS(), DefaultLayout())
	if after.Problem != "" || after.Local == nil || !reflect.DeepEqual(after.Local, before.Local) ||
		after.Segments != 0 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
