package disk

import (
	"strings"
	"testing"
	"testing/fstest"
)

// FuzzSSTable: no file makes the reader fail or run away. Checksums are made right, which no fuzzer
// would guess.
func FuzzSSTable(f *testing.F) {
	for _, name := range []string{"5.0-nb-needs-bootstrap", "5.0-oa-uuid-completed", "5.0-nb-uncompressed"} {
		files := volume(f, name)
		for file, data := range files {
			table, is := strings.CutSuffix(file, dataSuffix)
			if !is {
				continue
			}
			header, err := parseHeader(files[table+"-Statistics.db"].Data)
			if err != nil {
				f.Fatal(err)
			}
			rows, err := decompress(files[table+"-CompressionInfo.db"].Data, data.Data)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(rows, uint8(len(header.columns)), strings.Contains(name, "nb"))
		}
	}
	names := []string{"UTF8Type", "UUIDType", "SetType(UTF8Type)", "Int32Type", "MapType(UUIDType,BytesType)",
		"ListType(LongType)"}
	f.Fuzz(func(t *testing.T, rows []byte, columns uint8, old bool) {
		h := &header{}
		for i := range columns % 64 {
			c := column{name: string(rune('a' + i))}
			c.describe(names[int(i)%len(names)])
			h.columns = append(h.columns, c)
		}
		var p partition
		if err := p.read(rows, h, old); err == nil && len(rows) == 0 {
			t.Fatal("no bytes are a partition")
		}
		_, _ = decodeLocal(p.live())
	})
}

// FuzzFiles gives the reader all files at once, as they would lie on a damaged disk.
func FuzzFiles(f *testing.F) {
	files := volume(f, "5.0-nb-completed")
	table := localDir + "nb-8-big"
	f.Add(files[table+dataSuffix].Data, files[table+"-Statistics.db"].Data, files[table+"-CompressionInfo.db"].Data,
		[]byte(added+committed))
	f.Fuzz(func(t *testing.T, data, statistics, info, log []byte) {
		r := inspect(fstest.MapFS{
			table + dataSuffix:                {Data: data},
			table + "-Statistics.db":          {Data: statistics},
			table + "-CompressionInfo.db":     {Data: info},
			localDir + "nb_txn_flush_1-1.log": {Data: log},
		})
		if r.Empty() {
			t.Fatal("a volume with an SSTable counts as empty")
		}
		if r.Local == nil && r.Problem == "" && len(r.Unfinished) == 0 {
			t.Fatal("neither content nor problem")
		}
		_, _ = parseColumns(&input{b: statistics}) // past its checksum
	})
}
