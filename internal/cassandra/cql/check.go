package cql

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/words"
)

// CheckTimeout bounds one query of a check: a count reads all rows.
const CheckTimeout = time.Hour

const (
	// longestQuery is how much of a query a message has.
	longestQuery = 120
	// precision has room for each bigint.
	precision = 128
)

// Answer is what is known of the answer to a query.
type Answer struct {
	// Rows says that it has any.
	Rows bool
	// Number is what the first column of the first row has; nil if that is null, or no number.
	Number *big.Float
}

// Rows is what CheckRows asks: a Session.
type Rows interface {
	Answer(ctx context.Context, query string) (Answer, error)
}

// Answer asks a query of a quorum of the replicas.
func (s *Session) Answer(ctx context.Context, query string) (Answer, error) {
	iter := s.driver.Query(query).Consistency(gocql.Quorum).IterContext(ctx)
	var first number
	row, err := iter.RowData()
	if err != nil {
		return Answer{}, errors.Join(err, iter.Close())
	}
	values := make([]any, len(row.Values)) // nil for those that are not read
	if columns := iter.Columns(); len(columns) > 0 && columns[0].TypeInfo.Type() != gocql.TypeTuple {
		values[0] = &first
	}
	has := iter.Scan(values...)
	return Answer{Rows: has, Number: first.value}, iter.Close()
}

// number is any number of CQL.
type number struct{ value *big.Float }

// UnmarshalCQL implements gocql.Unmarshaler. What is no number is not an error.
func (n *number) UnmarshalCQL(info gocql.TypeInfo, data []byte) error {
	switch info.Type() {
	case gocql.TypeTinyInt, gocql.TypeSmallInt, gocql.TypeInt, gocql.TypeBigInt, gocql.TypeCounter, gocql.TypeVarint,
		gocql.TypeFloat, gocql.TypeDouble, gocql.TypeDecimal:
	default:
		return nil
	}
	if data == nil {
		return nil
	}
	var value any
	if err := info.Unmarshal(data, &value); err != nil {
		return err
	}
	n.value, _ = new(big.Float).SetPrec(precision).SetString(fmt.Sprint(value)) // NaN is none
	return nil
}

// CheckRows is nil if each query has the answer that it must have, and says which they have: of
// what is in the rows, those numbers alone that the checks compare.
func CheckRows(ctx context.Context, rows Rows, checks []v1alpha1.RowCheck) (string, error) {
	said := make([]string, len(checks))
	for i, c := range checks {
		query := words.Shorten(c.Query, longestQuery)
		a, err := rows.Answer(ctx, c.Query)
		switch {
		case err != nil:
			return "", fmt.Errorf("ask %s: %w", query, err)
		case !a.Rows:
			return "", fmt.Errorf("%s: the answer has no row", query)
		case c.AtLeast == nil:
			said[i] = query + ": has a row"
		case a.Number == nil:
			return "", fmt.Errorf("%s: the first column of the first row has no number, and must have one of at "+
				"least %d", query, *c.AtLeast)
		case a.Number.Cmp(new(big.Float).SetInt64(*c.AtLeast)) < 0:
			return "", fmt.Errorf("%s: has %s, and must have at least %d", query, a.Number.Text('f', -1), *c.AtLeast)
		default:
			said[i] = query + ": " + a.Number.Text('f', -1)
		}
	}
	return strings.Join(said, "; "), nil
}
