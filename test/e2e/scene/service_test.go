package scene

import (
	"errors"
	"testing"
	"time"
)

func TestServiceOfAClient(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(seconds float64, partition int, err error) request {
		return request{partition: partition, at: began.Add(time.Duration(seconds * float64(time.Second))),
			took: 5 * time.Millisecond, err: err}
	}
	no := errors.New("no")
	for name, c := range map[string]struct {
		requests []request
		served   int
		gap      time.Duration
	}{
		"nothing":                 {nil, 0, 0},
		"all served":              {[]request{at(0, 1, nil), at(9, 1, nil)}, 2, 0},
		"one refused between two": {[]request{at(0, 1, nil), at(1, 1, no), at(3, 1, nil)}, 2, 3 * time.Second},
		"each partition has its own gap": {[]request{at(0, 1, nil), at(0, 2, nil), at(1, 1, no), at(2, 2, nil),
			at(2.5, 1, nil)}, 4, 2500 * time.Millisecond},
		"in any order":          {[]request{at(3, 1, nil), at(1, 1, no), at(0, 1, nil)}, 2, 3 * time.Second},
		"not served at the end": {[]request{at(0, 1, nil), at(1, 1, no), at(7, 2, nil)}, 2, 7 * time.Second},
		"never served":          {[]request{at(0, 2, nil), at(1, 1, no), at(2, 2, nil)}, 2, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := serviceOf(c.requests)
			if s.Requests != len(c.requests) || s.Served != c.served || s.Gap != c.gap {
				t.Errorf("%s, want %d served and a gap of %s", s, c.served, c.gap)
			}
			if refused := s.Requests - s.Served; s.Refusals["no"] != refused {
				t.Errorf("%d refusals are explained, want %d", s.Refusals["no"], refused)
			}
		})
	}
}

func TestShareOfTheServed(t *testing.T) {
	if got := (Service{Requests: 1000, Served: 999}).Share(); got != 0.999 {
		t.Errorf("%v, want 0.999", got)
	}
	if got := (Service{}).Share(); got != 0 {
		t.Errorf("%v of nothing", got)
	}
}
