package cql

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
)

type answers map[string]Answer

func (a answers) Answer(_ context.Context, query string) (Answer, error) {
	answer, found := a[query]
	if !found {
		return answer, errors.New("unconfigured table")
	}
	return answer, nil
}

func TestCheckRows(t *testing.T) {
	rows := answers{"none": {}, "null": {Rows: true}, "two": {Rows: true, Number: big.NewFloat(2)},
		"large": {Rows: true, Number: big.NewFloat(1e15)}}
	least := int64(3)
	for name, c := range map[string]struct {
		query   string
		atLeast *int64
		says    string // of an error, if fails
		fails   bool
	}{
		"a row":                {"null", nil, "null: has a row", false},
		"no row":               {"none", nil, "none: the answer has no row", true},
		"no row for a number":  {"none", &least, "none: the answer has no row", true},
		"no number":            {"null", &least, "has no number, and must have one of at least 3", true},
		"too few":              {"two", &least, "two: has 2, and must have at least 3", true},
		"enough":               {"large", &least, "large: 1000000000000000", false},
		"what cannot be asked": {"other", nil, "ask other: unconfigured table", true},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := CheckRows(t.Context(), rows, []v1alpha1.RowCheck{{Query: "large"},
				{Query: c.query, AtLeast: c.atLeast}})
			if err != nil {
				said = err.Error()
			}
			if (err != nil) != c.fails || !strings.Contains(said, c.says) {
				t.Errorf("says %q, error %v", said, err)
			}
		})
	}
}
