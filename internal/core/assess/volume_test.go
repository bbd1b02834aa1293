package assess

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAVolumeIsTheOneThatIsWanted(t *testing.T) {
	claim := func(size, class string) *corev1.PersistentVolumeClaim {
		out := &corev1.PersistentVolumeClaim{}
		out.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		if class != "" {
			out.Spec.StorageClassName = &class
		}
		return out
	}
	for name, c := range map[string]struct {
		have, want *corev1.PersistentVolumeClaim
		same       bool
	}{
		"the same":                          {claim("1Gi", ""), claim("1024Mi", ""), true},
		"smaller":                           {claim("1Gi", ""), claim("2Gi", ""), false},
		"of the default class":              {claim("1Gi", "standard"), claim("1Gi", ""), true},
		"of the class":                      {claim("1Gi", "fast"), claim("1Gi", "fast"), true},
		"of another class":                  {claim("1Gi", "standard"), claim("1Gi", "fast"), false},
		"of a class that is not chosen yet": {claim("1Gi", ""), claim("1Gi", "fast"), false},
		"smaller, of the class":             {claim("1Gi", "fast"), claim("2Gi", "fast"), false},
	} {
		if got := SameVolume(c.have, c.want); got != c.same {
			t.Errorf("%s: %v, want %v", name, got, c.same)
		}
	}
}
