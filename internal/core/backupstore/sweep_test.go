package backupstore

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/facts"
)

// A status keeps what it said of latest backups while the store cannot be looked at, and says what
// is swept before it says what others have there.
func TestLatestBackups(t *testing.T) {
	of := func(id string) *v1alpha1.StoredBackup { return &v1alpha1.StoredBackup{ID: id} }
	s := &facts.Sweep{Object: &v1alpha1.CassandraBackupStore{ObjectMeta: metav1.ObjectMeta{Name: "main", UID: "s"}},
		Swept:    map[types.UID]*format.Marks{"z": {At: time.Unix(100, 0)}},
		Problems: map[types.UID]string{}, Latest: map[types.UID]*v1alpha1.StoredBackup{"z": of("z1")}}
	for i := range mostClusters {
		uid := fmt.Sprintf("%03d", i)
		s.Latest[types.UID(uid)] = of("of" + uid)
	}
	for _, latest := range []map[types.UID]*v1alpha1.StoredBackup{s.Latest, nil} {
		s.Latest = latest
		p := NextSweep(s)
		if latest == nil {
			if len(p.Writes) > 0 {
				t.Errorf("it is written again: %s", p)
			}
			break
		}
		status := p.Writes[0].Object.(*v1alpha1.CassandraBackupStore).Status
		if len(status.Clusters) != mostClusters || status.Clusters[0].UID != "z" || status.Clusters[0].SweptAt == nil ||
			status.Clusters[0].LatestBackup.ID != "z1" || status.Clusters[99].LatestBackup.ID != "of098" {
			t.Errorf("%+v", status.Clusters)
		}
		s.Object.Status = status
	}
}

// Of what backups alone have the largest are in the status.
func TestWhatBackupsHaveAlone(t *testing.T) {
	m := &format.Marks{At: time.Unix(100, 0), LogBytes: 7}
	for i := range mostAlone + 1 {
		m.Alone = append(m.Alone, format.Alone{Backup: fmt.Sprint(i), Bytes: int64(i)})
	}
	p := NextSweep(&facts.Sweep{Object: &v1alpha1.CassandraBackupStore{}, Problems: map[types.UID]string{},
		Swept: map[types.UID]*format.Marks{"z": m}})
	of := p.Writes[0].Object.(*v1alpha1.CassandraBackupStore).Status.Clusters[0]
	if len(of.Alone) != mostAlone || of.Alone[0].ID != "64" || of.Alone[mostAlone-1].Bytes != 1 || of.LogBytes != 7 {
		t.Errorf("%+v", of)
	}
}
