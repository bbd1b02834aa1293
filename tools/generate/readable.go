package main

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// What the API server takes for an integer, a time or a quantity is more than the Go types can
// read. One object that they cannot read would keep the operator from reading any, so these bounds
// protect every cluster from the author of one.
const (
	maxInt32 = 1<<31 - 1
	minInt32 = -1 << 31
	// maxExact is the largest integer up to which JSON numbers are exact.
	maxExact = 1<<53 - 1

	// timePattern is RFC 3339; the format date-time alone admits other notations.
	timePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`
	maxTimeLen  = 40

	quantityRule    = `type(self) == int || isQuantity(self)`
	quantityMessage = `'"' + string(self) + '" is not a quantity such as 2, 500m or 4Gi'`
)

// readable lets nothing pass that the Go types cannot read.
func readable(root *schema) {
	walk(root, "", func(path string, s *schema) {
		switch {
		case s.Type == "integer":
			low, high := float64(minInt32), float64(maxInt32)
			if s.Format == "int64" {
				low, high = -maxExact, maxExact
			}
			s.Minimum, s.Maximum = first(s.Minimum, &low), first(s.Maximum, &high)
		case s.Type == "string" && s.Format == "date-time":
			s.Pattern, s.MaxLength = timePattern, ptr[int64](maxTimeLen)
		case isQuantity(s) && len(s.XValidations) == 0:
			s.XValidations = apiextensionsv1.ValidationRules{{Rule: quantityRule, MessageExpression: quantityMessage}}
		}
	})
}

// isQuantity tells quantities from other schemas of integers or texts by the pattern that
// controller-gen gives them.
func isQuantity(s *schema) bool { return s.XIntOrString && strings.Contains(s.Pattern, "[KMGTPE]i") }

func first[T any](values ...*T) *T {
	for _, value := range values {
		if value != nil {
			return value
		}
	}
	return nil
}
