package node

// What the environment of an agent says of its pod is as old as the agent. The record knows of a
// resize since, but says nothing of a pod that is not what it describes yet.

// MemoryLimit is how much memory a JVM may count on that is started now, in bytes; 0 if there is no
// limit. While the record and the environment differ it is the less, since the pod may be half way
// from one to the other.
func (f *Facts) MemoryLimit(environment int64) int64 {
	if f.Record == nil {
		return environment
	}
	if r := f.Record.Spec.Resized; r.Of(f.Self.PodUID) {
		if r.MemoryLimit == nil {
			return 0
		}
		return r.MemoryLimit.Value()
	}
	if r := f.Record.Spec.Pod.Resources; r != nil && environment > 0 {
		if said := r.Limits.Memory().Value(); said > 0 {
			return min(said, environment)
		}
	}
	return environment
}

// podTemplate is the hash of what the pod is that the JVM runs in, as far as that JVM was started
// in it: one that is yet to be restarted for a resize proves nothing of it.
func (f *Facts) podTemplate(m *Memory) string {
	if f.Record == nil || !f.Record.Spec.Resized.Of(f.Self.PodUID) {
		return f.Self.PodTemplate
	}
	due := f.Record.Spec.Resized.Restart
	if m.Proven != nil && due != "" && (m.Restart == nil || m.Restart.ID != due || m.Restart.FinishedAt == nil) {
		return m.Proven.PodTemplate
	}
	return f.Record.Spec.Resized.PodTemplate
}
