package superuser

import (
	"bytes"
	"embed"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"regexp"
	"strconv"
)

// Where the SSTable belongs. The number is one that Cassandra, which counts up from 1, does not
// reach by itself, so that nothing else has the name.
const (
	Keyspace = "system_auth"
	Table    = "roles"
	TableID  = "5bc52802de2535edaeab188eecebb090"
	Name     = "nb-1000000000-big"
)

//go:embed template
var template embed.FS

var (
	placeholder = []byte("$2a$04$xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
	// hashes are those that Cassandra takes: its jBCrypt knows $2a$ alone.
	hashes = regexp.MustCompile(`^\$2a\$\d\d\$[./A-Za-z0-9]{53}$`)
)

// SSTable are the files of the SSTable by component, with the hash of helenus_root's password.
func SSTable(hash string) (map[string][]byte, error) {
	if !hashes.MatchString(hash) {
		return nil, fmt.Errorf("make SSTable of the superuser: the hash of the password is none of bcrypt, $2a$")
	}
	files := map[string][]byte{}
	err := fs.WalkDir(template, "template", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[entry.Name()], err = template.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read template of the superuser's SSTable: %w", err)
	}
	data := bytes.Replace(files["Data.db"], placeholder, []byte(hash), 1)
	sum := crc32.ChecksumIEEE(data)
	files["Data.db"], files["Digest.crc32"] = data, strconv.AppendUint(nil, uint64(sum), 10)
	chunks := files["CRC.db"] // the size of a chunk, then the checksum of each: there is one
	binary.BigEndian.PutUint32(chunks[len(chunks)-4:], sum)
	return files, nil
}
