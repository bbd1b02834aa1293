package journal

import (
	"fmt"
	"time"
)

const (
	// Dir is the directory of Helenus at the root of each volume.
	Dir = ".helenus"
	// MarkerPath tells whose volume it is.
	MarkerPath = Dir + "/volume.json"
	markerKind = "volume marker"
)

// Marker is what each volume of a node carries: without it a member's volume is a lost one that
// came back empty.
type Marker struct {
	ClusterUID string    `json:"clusterUID"`
	Node       string    `json:"node"`
	Volume     string    `json:"volume"` // data, commitlog, or the name of an additional volume
	CreatedAt  time.Time `json:"createdAt"`
}

// same compares without the time: a marker is not another one because it was written again.
func (m Marker) same(other Marker) bool {
	return m.ClusterUID == other.ClusterUID && m.Node == other.Node && m.Volume == other.Volume
}

func (m Marker) String() string {
	return fmt.Sprintf("volume %s of node %s in cluster %s", m.Volume, m.Node, m.ClusterUID)
}

// ReadMarker reads the marker of a volume. The error says in words why the status is neither Absent
// nor Valid.
func ReadMarker(volume FS) (Marker, Status, error) {
	var m Marker
	_, status, err := read(volume, MarkerPath, markerKind, &m)
	if status == Valid && (m.ClusterUID == "" || m.Node == "" || m.Volume == "") {
		status, err = Corrupt, fmt.Errorf("%s names no owner", markerKind)
	}
	return m, status, err
}

// CreateMarker marks a volume that has no marker. One that says the same is left as it is; any
// other state of the volume is an error and changes nothing.
func CreateMarker(volume FS, m Marker) error {
	present, status, err := ReadMarker(volume)
	switch {
	case status == Valid && present.same(m):
		return syncMarker(volume)
	case status == Valid:
		return fmt.Errorf("mark as %s: it is %s", m, present)
	case status != Absent:
		return fmt.Errorf("mark as %s: %w", m, err)
	}
	return writeMarker(volume, m)
}

// ReplaceMarker gives a volume, known to belong to from, to another owner: the adoption of a
// cluster.
func ReplaceMarker(volume FS, from, to Marker) error {
	present, status, err := ReadMarker(volume)
	switch {
	case status == Valid && present.same(to):
		return syncMarker(volume)
	case status == Valid && !present.same(from):
		return fmt.Errorf("give %s to another owner: it is %s", from, present)
	case status == Absent:
		return fmt.Errorf("give %s to another owner: it has no marker", from)
	case status != Valid:
		return fmt.Errorf("give %s to another owner: %w", from, err)
	}
	return writeMarker(volume, to)
}

func writeMarker(volume FS, m Marker) error {
	if m.ClusterUID == "" || m.Node == "" || m.Volume == "" {
		return fmt.Errorf("write %s: cluster uid, node and volume must all be named", markerKind)
	}
	file, err := encode(markerKind, m)
	if err != nil {
		return err
	}
	if err := makeDir(volume); err != nil {
		return err
	}
	if err := replaceFile(volume, MarkerPath, file); err != nil {
		return err
	}
	return syncMarker(volume)
}

// syncMarker makes the name of a marker durable, also of one that an agent wrote which was killed
// before it did that.
func syncMarker(volume FS) error {
	if err := volume.SyncDir(Dir); err != nil {
		return fmt.Errorf("make %s durable: %w", MarkerPath, err)
	}
	return nil
}

// makeDir makes the directory of Helenus, durably.
func makeDir(volume FS) error {
	if err := volume.Mkdir(Dir); err != nil {
		return fmt.Errorf("create %s: %w", Dir, err)
	}
	if err := volume.SyncDir("."); err != nil {
		return fmt.Errorf("make %s durable: %w", Dir, err)
	}
	return nil
}
