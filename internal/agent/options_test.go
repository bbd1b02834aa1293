package agent

import (
	"maps"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/agent/pod"
	"helenus.io/helenus/internal/core/layout"
)

func TestReadEnvironment(t *testing.T) {
	complete := map[string]string{
		layout.EnvPodName: "orders-dc1-r1-0", layout.EnvPodNamespace: "shop", layout.EnvPodUID: "pod",
		layout.EnvPodTemplate: "template", layout.EnvPodIP: "::ffff:10.0.0.1",
		layout.EnvClusterName: "orders", layout.EnvClusterUID: "uid", layout.EnvMemoryLimit: "1073741824",
		layout.EnvGracePeriod: "60",
		layout.EnvVolumes:     "data=/var/lib/cassandra,commitlog=/var/lib/cassandra-commitlog,scratch=/scratch",
	}
	read := func(change func(map[string]string)) (environment, error) {
		env := maps.Clone(complete)
		change(env)
		return readEnvironment(Options{Root: "/root",
			Lookup: func(name string) (string, bool) { v, found := env[name]; return v, found }})
	}
	e, err := read(func(map[string]string) {})
	if err != nil || e.self.Address != "10.0.0.1" || e.memoryLimit != 1<<30 || e.self.GracePeriod != time.Minute ||
		e.self.FactsPort != layout.FactsPort {
		t.Errorf("complete: %+v, %v", e, err)
	}
	e, err = read(func(env map[string]string) {
		delete(env, layout.EnvMemoryLimit)
		delete(env, layout.EnvGracePeriod)
	})
	if err != nil || e.memoryLimit != 0 || e.self.GracePeriod != defaultGracePeriod {
		t.Errorf("without the optional ones: %+v, %v", e, err)
	}
	if len(e.volumes) != 3 || e.volumes[0] != (pod.Volume{Name: "data", Directory: "/root/var/lib/cassandra"}) ||
		e.volumes[2] != (pod.Volume{Name: "scratch", Directory: "/root/scratch"}) {
		t.Errorf("volumes %v", e.volumes)
	}
	for _, wrong := range []string{"", "data", "data=", "=/x", "data=var/lib/cassandra",
		"commitlog=/var/lib/cassandra-commitlog,data=/var/lib/cassandra", "data=/elsewhere",
		"data=/var/lib/cassandra,"} {
		if _, err := read(func(env map[string]string) { env[layout.EnvVolumes] = wrong }); err == nil ||
			!strings.Contains(err.Error(), layout.EnvVolumes) {
			t.Errorf("volumes %q: %v", wrong, err)
		}
	}
	// Everything that is wrong is named at once.
	_, err = read(func(env map[string]string) {
		delete(env, layout.EnvPodName)
		env[layout.EnvPodIP], env[layout.EnvMemoryLimit], env[layout.EnvGracePeriod] = "nowhere", "1Gi", "-1"
	})
	for _, name := range []string{layout.EnvPodName, layout.EnvPodIP, layout.EnvMemoryLimit, layout.EnvGracePeriod} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: does not name %s", err, name)
		}
	}
}
