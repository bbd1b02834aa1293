package superuser

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"
)

const hash = "$2a$04$xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

// TestTemplateIsWhatCassandraWrote: with the hash that Cassandra wrote the checksums are its own.
func TestTemplateIsWhatCassandraWrote(t *testing.T) {
	files, err := SSTable(hash, Oldest)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if want, err := template.ReadFile("template/" + name); err != nil || string(content) != string(want) {
			t.Errorf("%s is %x, error %v, want %x", name, content, err, want)
		}
	}
	want := strings.Fields(string(files["TOC.txt"]))
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

// TestGolden pins what is patched. That Cassandra reads it is in TestSuperuser of test/agent.
func TestGolden(t *testing.T) {
	files, err := SSTable("$2a$04$pkMqjEHLnZ9Wlyq.nDqNau9WSVqIBuZTPfy4S3g4tJhi0zbpb.d9W", Oldest)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Data.db": "000c68656c656e75735f726f6f747fffffff8000000000000000244c1afffffadfb55225800108010801083c24326124303424706b4d716a45484c6e5a39576c79712e6e44714e617539575356714942755a545066793453336734744a6869307a6270622e64395701",
		"CRC.db":  "00010000b25e7e9a",
	} {
		if got := hex.EncodeToString(files[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := string(files["Digest.crc32"]); got != "2992537242" {
		t.Errorf("digest %s", got)
	}
}

func TestOtherHashesAreRefused(t *testing.T) {
	for _, wrong := range []string{"", "secret", hash + "x", strings.Replace(hash, "$2a$", "$2b$", 1),
		strings.Replace(hash, "x", "'", 1)} {
		if _, err := SSTable(wrong, Oldest); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v", wrong, err)
		}
	}
}

// TestTime pins where a time is: in the row, and twice in the statistics, whose checksum follows.
func TestTime(t *testing.T) {
	before, err := SSTable(hash, Oldest)
	if err != nil {
		t.Fatal(err)
	}
	files, err := SSTable(hash, 1800000000000000)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(name string) string {
		was, is := before[name], files[name]
		if len(was) != len(is) {
			t.Fatalf("%s has %d bytes, had %d", name, len(is), len(was))
		}
		from, to := 0, len(is)
		for was[from] == is[from] {
			from++
		}
		for was[to-1] == is[to-1] {
			to--
		}
		return fmt.Sprintf("%d %x", from, is[from:to])
	}
	if got, want := changed("Data.db"), "30 000144cc7abe0000"; got != want {
		t.Errorf("the row changes at %s, want %s", got, want)
	}
	times, sum := "4462 06651728988000"+"0006651728988000"+"7fffffff", "468e62f2"
	if got := changed("Statistics.db"); !strings.HasPrefix(got, times) || !strings.HasSuffix(got, sum) {
		t.Errorf("the statistics change at %s, want %s … %s", got, times, sum)
	}
}

// TestReplication pins the row of a keyspace, and that the header names its columns. That Cassandra
// reads it is in TestBornInAnotherShape of test/agent.
func TestReplication(t *testing.T) {
	files, err := Replication("shop", map[string]string{"east": "1",
		"class": "org.apache.cassandra.locator.NetworkTopologyStrategy"}, 1795687200000000)
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) string { return fmt.Sprintf("%08x%x", len(s), s) }
	for name, want := range map[string]string{
		"Data.db": "000473686f70" + "7fffffff8000000000000000" + "245e12" + "ff000140e053d48800" + "0852" + "00000002" +
			text("class") + text("org.apache.cassandra.locator.NetworkTopologyStrategy") + text("east") +
			text("1") + "01",
		"Index.db": "000473686f700000",
	} {
		if got := hex.EncodeToString(files[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	statistics := files["Statistics.db"]
	header := statistics[binary.BigEndian.Uint32(statistics[36:]) : len(statistics)-4]
	want := "\x00\x00\x00\x28" + utf8Type + "\x00\x00\x01\x0breplication" + string(vint(len(frozenMap))) + frozenMap
	if string(header) != want {
		t.Errorf("header %q, want %q", header, want)
	}
	if got := crc32.ChecksumIEEE(header); got != binary.BigEndian.Uint32(statistics[len(statistics)-4:]) {
		t.Errorf("checksum %x", got)
	}
}

// TestDeletion pins the deletion of a keyspace. That Cassandra heeds it is in TestBornFromABackup
// of test/agent.
func TestDeletion(t *testing.T) {
	const at = 1795687200000000
	files, err := Deletion("shop", at)
	if err != nil {
		t.Fatal(err)
	}
	deleted := binary.BigEndian.AppendUint32(nil, at/1e6)
	time := binary.BigEndian.AppendUint64(nil, at)
	if got, want := files["Data.db"], slices.Concat([]byte("\x00\x04shop"), deleted, time, []byte{1}); !bytes.Equal(got,
		want) {
		t.Errorf("Data.db is %x, want %x", got, want)
	}
	if !bytes.Contains(files["Statistics.db"], slices.Concat(time, time, deleted, deleted)) {
		t.Error("the statistics do not have the time of the deletion")
	}
	if header := "\x00\x00\x00\x28" + utf8Type + "\x00\x00\x00"; !bytes.HasSuffix(files["Statistics.db"],
		binary.BigEndian.AppendUint32([]byte(header), crc32.ChecksumIEEE([]byte(header)))) {
		t.Error("the header is not one without columns")
	}
}

func TestVint(t *testing.T) {
	for n, want := range map[int]string{0: "00", 1: "01", 127: "7f", 128: "8080", 300: "812c", 16383: "bfff",
		16384: "c04000"} {
		if got := hex.EncodeToString(vint(n)); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
