package v1alpha1

// What a CassandraNode can hold.
const (
	// MaxOperations in the spec.
	MaxOperations = 4
	// MaxOperationStatuses in the status.
	MaxOperationStatuses = 8
)

// Operation is the wanted operation with an id; nil if there is none.
func (s *CassandraNodeSpec) Operation(id string) *OperationIntent {
	for i := range s.Operations {
		if s.Operations[i].ID == id {
			return &s.Operations[i]
		}
	}
	return nil
}

// Operation is how far the operation with an id has come; nil if the agent has said nothing of it.
func (s *CassandraNodeStatus) Operation(id string) *OperationStatus {
	for i := range s.Operations {
		if s.Operations[i].ID == id {
			return &s.Operations[i]
		}
	}
	return nil
}

// Final says that an operation in this phase never goes on.
func (p OperationPhase) Final() bool { return p != OperationRunning }
