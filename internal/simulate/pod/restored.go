package pod

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// HasFile implements agentpod.Store.
func (v volume) HasFile(keyspace, _, _ string, _ int64, sum string) bool {
	return v.s.content(v.name).Data.HasFile(keyspace, sum)
}

// PlaceFile implements agentpod.Store.
func (v volume) PlaceFile(keyspace, _, name string, size int64, sum string, content io.Reader) error {
	all, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	if has := sha256.Sum256(all); int64(len(all)) != size || hex.EncodeToString(has[:]) != sum {
		return fmt.Errorf("write file %s of keyspace %s: its content is not what was backed up", name, keyspace)
	}
	if keyspace == "system_schema" && !strings.HasSuffix(name, "-Data.db") {
		return nil // of a backup there is the data alone
	}
	return v.s.content(v.name).Data.PutFile(keyspace, sum, all)
}
