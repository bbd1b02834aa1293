package operation

import "helenus.io/helenus/api/v1alpha1"

// A flush conflicts with nothing.
var flush = Kind{Type: v1alpha1.OperationFlush, AnyStrategy: true}
