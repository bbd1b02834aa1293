package queries

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"
)

// Store is a storage of Prometheus with what was scraped.
type Store struct {
	storage     *teststorage.TestStorage
	engine      *promql.Engine
	first, last time.Time
}

// NewStore makes one that ends with the test.
func NewStore(t testing.TB) *Store {
	t.Helper()
	return &Store{storage: teststorage.New(t), engine: promqltest.NewTestEngineWithOpts(t,
		promql.EngineOpts{MaxSamples: 1 << 22, Timeout: time.Minute})}
}

// Scraped adds a page in the text format. Labels of the target come beside those of the page, which
// count before them, as with honor_labels.
func (s *Store) Scraped(ctx context.Context, page []byte, at time.Time, target map[string]string) (err error) {
	p, err := textparse.New(page, "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return fmt.Errorf("parse page: %w", err)
	}
	out := s.storage.Appender(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Rollback())
		}
	}()
	for {
		switch entry, err := p.Next(); {
		case errors.Is(err, io.EOF):
			if err := out.Commit(); err != nil {
				return fmt.Errorf("keep page: %w", err)
			}
			if s.first.IsZero() || at.Before(s.first) {
				s.first = at
			}
			if at.After(s.last) {
				s.last = at
			}
			return nil
		case err != nil:
			return fmt.Errorf("parse page: %w", err)
		case entry != textparse.EntrySeries:
			continue
		}
		var own labels.Labels
		p.Labels(&own)
		_, _, value := p.Series()
		all := labels.NewBuilder(own)
		for name, v := range target {
			if own.Get(name) == "" {
				all.Set(name, v)
			}
		}
		if _, err := out.Append(0, all.Labels(), at.UnixMilli(), value); err != nil {
			return fmt.Errorf("keep %s: %w", all.Labels(), err)
		}
	}
}

// pageMark begins the line before each page of a recording, with its Unix time behind.
const pageMark = "# page "

// Replay adds all pages of a recording.
func (s *Store) Replay(ctx context.Context, recording io.Reader, target map[string]string) error {
	var page strings.Builder
	at := time.Time{}
	end := func() error {
		defer page.Reset()
		if at.IsZero() {
			return nil
		}
		return s.Scraped(ctx, []byte(page.String()), at, target)
	}
	lines := bufio.NewScanner(recording)
	for lines.Scan() {
		mark, found := strings.CutPrefix(lines.Text(), pageMark)
		if !found {
			page.WriteString(lines.Text() + "\n")
			continue
		}
		if err := end(); err != nil {
			return err
		}
		seconds, err := strconv.ParseInt(mark, 10, 64)
		if err != nil {
			return fmt.Errorf("read time of a page: %w", err)
		}
		at = time.Unix(seconds, 0)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read recording: %w", err)
	}
	return end()
}

// Gives says that an expression has given a number at some time of what was scraped.
func (s *Store) Gives(ctx context.Context, expression string) (bool, error) {
	const step = 5 * time.Second
	query, err := s.engine.NewRangeQuery(ctx, s.storage, nil, expression, s.first, s.last, step)
	if err != nil {
		return false, fmt.Errorf("parse %s: %w", expression, err)
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return false, fmt.Errorf("evaluate %s: %w", expression, err)
	}
	for _, series := range matrix {
		for _, p := range series.Floats {
			if !math.IsNaN(p.F) {
				return true, nil
			}
		}
	}
	return false, nil
}
