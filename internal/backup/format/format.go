// Package format is what a backup is in an object store: the keys of its objects, and what its two
// kinds of JSON hold. docs/guide/backup-format.md describes it for people. It does no I/O, and
// imports the rules of garbage and the standard library alone.
package format

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/backup/garbage"
)

// Version of the format that is written. A reader refuses a higher one.
const Version = 1

// ErrDamaged means that a description is not what was written.
var ErrDamaged = errors.New("it is damaged")

// BlobKey is where the content that a hash names lies, in hexadecimal: that of one file of an
// SSTable, or of its pack. It is of the content and not of the name: Cassandra uses generations
// again after a disk was wiped, and changes Statistics.db and Summary.db in place.
func BlobKey(cluster, sum string) string { return cluster + "/blobs/" + sum[:2] + "/" + sum }

// ManifestKey is where the manifest of one node in a backup lies. It is written after its blobs.
func ManifestKey(cluster, backup, hostID string) string {
	return ManifestPrefix(cluster) + hostID + "/" + backup + manifestSuffix
}

const manifestSuffix = ".manifest"

// ManifestPrefix is that of all manifests of a cluster.
func ManifestPrefix(cluster string) string { return cluster + "/nodes/" }

// BackupOf is the id of the backup that the manifest or the description with a key is of; empty for
// other keys.
func BackupOf(key string) string {
	name := key[strings.LastIndex(key, "/")+1:]
	if id, is := strings.CutSuffix(name, manifestSuffix); is {
		return id
	}
	id, is := strings.CutSuffix(name, ".json")
	if !is {
		return ""
	}
	return id
}

// BackupKey is where the description of a backup lies. It is written last: what has it is complete.
func BackupKey(cluster, backup string) string { return BackupPrefix(cluster) + backup + ".json" }

// BackupPrefix is that of the descriptions of all backups of a cluster. Ids sort by time.
func BackupPrefix(cluster string) string { return cluster + "/backups/" }

// BlobPrefix is that of all blobs of a cluster.
func BlobPrefix(cluster string) string { return cluster + "/blobs/" }

// MarksPrefix is that of the marks of a cluster.
func MarksPrefix(cluster string) string { return cluster + "/garbage/" }

// PinPrefix is that of the pins of a cluster.
func PinPrefix(cluster string) string { return cluster + "/pins/" }

// DamagedPrefix is that of the names of blobs that were found damaged.
func DamagedPrefix(cluster string) string { return cluster + "/damaged/" }

// DamagedKey is where it is said of a blob that its content is another one: who has the right one
// puts it there again.
func DamagedKey(cluster, sum string) string { return DamagedPrefix(cluster) + sum }

// LeftOut is the prefix of what all restores leave out.
func LeftOut(cluster string) string { return cluster + "/leftout/" }

// LeftOutPrefix is that of what the restore with a tag leaves out.
func LeftOutPrefix(cluster, restore string) string { return LeftOut(cluster) + restore + "/" }

// LeftOutKey is where a member says that the restore leaves out all that a node had of the table
// with an id, since a file of it is damaged.
func LeftOutKey(cluster, restore, member, hostID, table string) string {
	return LeftOutPrefix(cluster, restore) + member + "/" + hostID + "/" + table
}

// MarksKey is where the marks of a time lie. The last in the list count.
func MarksKey(cluster string, at time.Time) string {
	return fmt.Sprintf("%s%019d.json", MarksPrefix(cluster), at.UnixNano())
}

// PinKey is where somebody says that a blob is needed though it is marked.
func PinKey(cluster, sum, who string) string { return PinPrefix(cluster) + sum + "/" + who }

// SumOf is the hash that the key of a blob or of a pin has.
func SumOf(cluster, key string) (garbage.Sum, error) {
	name := key[strings.LastIndex(key, "/")+1:]
	if pin, is := strings.CutPrefix(key, PinPrefix(cluster)); is {
		name, _, _ = strings.Cut(pin, "/")
	}
	return ParseSum(name)
}

// ParseSum reads a hash.
func ParseSum(text string) (sum garbage.Sum, err error) {
	if n, err := hex.Decode(sum[:], []byte(text)[:min(len(text), 2*len(sum))]); err != nil || n != len(sum) ||
		len(text) != 2*len(sum) {
		return sum, fmt.Errorf("%q is no SHA-256", text)
	}
	return sum, nil
}

// Marks are the blobs that nothing named, and what was found and deleted with them.
type Marks struct {
	Version int `json:"version"`
	// At is when the look has ended.
	At time.Time `json:"at"`
	// Blobs, and their Bytes, that are there; Marked of them, and Deleted before the look. Locked
	// ones are due, and cannot be deleted yet.
	Blobs       int64    `json:"blobs"`
	Bytes       int64    `json:"bytes"`
	Marked      int64    `json:"marked"`
	MarkedBytes int64    `json:"markedBytes"`
	Deleted     int64    `json:"deleted"`
	Locked      int64    `json:"locked,omitempty"`
	Sets        []Marked `json:"sets,omitempty"`
	// Gone are the hashes of those that were marked before and are not now, one after the other:
	// they were deleted, or are needed.
	Gone []byte `json:"gone,omitempty"`
	// Alone are the bytes of blobs that one backup alone names, for each, and LogBytes those of
	// commit logs.
	Alone    []Alone `json:"alone,omitempty"`
	LogBytes int64   `json:"logBytes,omitempty"`
}

// Alone is what the deletion of a backup would free.
type Alone struct {
	Backup string `json:"backup"`
	Bytes  int64  `json:"bytes"`
}

// Marked are blobs that are marked since the same time: their hashes one after the other.
type Marked struct {
	Since time.Time `json:"since"`
	Sums  []byte    `json:"sums"`
}

// All are the marks by hash.
func (m *Marks) All() garbage.Marks {
	out := garbage.Marks{}
	for _, set := range m.Sets {
		for sum := range slices.Chunk(set.Sums, len(garbage.Sum{})) {
			if len(sum) == len(garbage.Sum{}) {
				out[garbage.Sum(sum)] = set.Since
			}
		}
	}
	return out
}

// Unreliable are the blobs that are marked, or were before.
func (m *Marks) Unreliable() garbage.Marks {
	out := m.All()
	for sum := range slices.Chunk(m.Gone, len(garbage.Sum{})) {
		if len(sum) == len(garbage.Sum{}) {
			out[garbage.Sum(sum)] = m.At
		}
	}
	return out
}

// Put writes marks down.
func (m *Marks) Put(all garbage.Marks) {
	sets := map[time.Time][]byte{}
	for sum, since := range all {
		sets[since.UTC()] = append(sets[since.UTC()], sum[:]...)
	}
	for since, sums := range sets {
		m.Sets = append(m.Sets, Marked{Since: since, Sums: sums})
	}
	m.Marked = int64(len(all))
}

// Manifest is what one node has in a backup.
type Manifest struct {
	Version int `json:"version"`
	// Backup is its id, and Cluster the uid of the cluster.
	Backup  string    `json:"backup"`
	Cluster string    `json:"cluster"`
	TakenAt time.Time `json:"takenAt"`
	Node    Node      `json:"node"`
	// SchemaVersion and Replication as the node had them when it began to upload.
	SchemaVersion string                       `json:"schemaVersion"`
	Replication   map[string]map[string]string `json:"replication"`
	// Tables of all keyspaces but system. That of system_schema is among them.
	Tables []Table `json:"tables"`
}

// Content is how many files there are, and their size.
func (m *Manifest) Content() (files, size int64) {
	for _, t := range m.Tables {
		for _, s := range t.SSTables {
			for _, f := range s.Files {
				files, size = files+int64(len(f.Unpacked())), size+f.Size
			}
		}
	}
	return files, size
}

// Node is a member of the ring at the time of the backup.
type Node struct {
	Name       string `json:"name"`
	HostID     string `json:"hostID"`
	Datacenter string `json:"datacenter"`
	Rack       string `json:"rack"`
	// Tokens, decimal.
	Tokens []string `json:"tokens"`
	// CassandraVersion that the node ran.
	CassandraVersion string `json:"cassandraVersion"`
}

// Table is one by its id, which stays when it is dropped and made again by the same name.
type Table struct {
	Keyspace string    `json:"keyspace"`
	Name     string    `json:"name"`
	ID       string    `json:"id"`
	SSTables []SSTable `json:"sstables,omitempty"`
	// Schema are the statements that create it and its types, with dropped columns and its id, as
	// Cassandra writes them beside a snapshot. Empty if that was not there.
	Schema string `json:"schema,omitempty"`
}

// Directory of the table's files under the data directory, relative to that of its keyspace.
func (t Table) Directory() string { return t.Name + "-" + t.ID }

// SSTable is one by the beginning of the names of its files, such as nb-12-big; one of an index in
// a table of its own by that in a directory, such as .idx/nb-12-big. Each of its files is a blob.
type SSTable struct {
	Name  string `json:"name"`
	Files []File `json:"files"`
}

// Pack is the name of a file that is no component of an SSTable, but has some of these in it.
const Pack = "pack"

// File is one component of an SSTable, such as Data.db, or the pack of small ones.
type File struct {
	Name string `json:"name"`
	// Size in bytes, and SHA-256 in hexadecimal, of the content.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Blob is the hash by which it is named in the store, if that is not its SHA-256.
	Blob string `json:"blob,omitempty"`
	// Files of a pack: their contents, one after the other, are its content.
	Files []File `json:"files,omitempty"`
}

// Unpacked are the files of a pack, else the file alone.
func (f *File) Unpacked() []File {
	if len(f.Files) > 0 {
		return f.Files
	}
	return []File{*f}
}

// BlobName is the hash by which the file is named in the store.
func (f *File) BlobName() string { return cmp.Or(f.Blob, f.SHA256) }

// Backup describes a complete backup: what its nodes have is in their manifests.
type Backup struct {
	Version int     `json:"version"`
	ID      string  `json:"id"`
	Cluster Cluster `json:"cluster"`
	// TakenAt is when the first snapshot was taken, and Skew how much later the last one.
	TakenAt time.Time     `json:"takenAt"`
	Skew    time.Duration `json:"skew"`
	// Replication of each keyspace as Cassandra has it.
	Replication map[string]map[string]string `json:"replication"`
	// SchemaVersion is the one that all nodes had before and after.
	SchemaVersion string `json:"schemaVersion"`
	Nodes         []Node `json:"nodes"`
	// LeftOut are the other members of the ring, which were down: nothing of them is in the backup,
	// and the others have a quorum of each range. No ring of its shape can be made from it.
	LeftOut []Node `json:"leftOut,omitempty"`
	// Bytes of all files.
	Bytes int64 `json:"bytes"`
	// Spec is that of the CassandraCluster, as JSON.
	Spec json.RawMessage `json:"spec"`
}

// Cluster is the one that a backup was taken of.
type Cluster struct {
	UID       string `json:"uid"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// CassandraName is its name inside Cassandra.
	CassandraName string `json:"cassandraName"`
}

// Decode reads a Manifest, a Backup or Marks of a version that is known.
func Decode[T Manifest | Backup | Marks](content []byte) (*T, error) {
	var head struct {
		Version int `json:"version"`
	}
	if bytes.HasPrefix(content, []byte("age-encryption.org/")) {
		return nil, errors.New("read description of backup: it is encrypted: the store must have encryption.mode " +
			"Client, and a Secret with its identity")
	}
	if err := json.Unmarshal(content, &head); err != nil {
		return nil, fmt.Errorf("read description of backup: %w: %w", ErrDamaged, err)
	}
	if head.Version < 1 || head.Version > Version {
		return nil, fmt.Errorf("read description of backup: version %d of the format is not known, only 1 to %d",
			head.Version, Version)
	}
	decoded := new(T)
	if err := json.Unmarshal(content, decoded); err != nil {
		return nil, fmt.Errorf("read description of backup: %w: %w", ErrDamaged, err)
	}
	return decoded, nil
}
