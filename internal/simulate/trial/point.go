package trial

import (
	"fmt"
	"strconv"
	"strings"

	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/world"
	"helenus.io/helenus/test/memdisk"
)

// Point is a place in a run where a fault can be injected: the nth time that a program does one
// thing.
type Point struct {
	// Who does it: operator or agent, or the disk of an agent.
	Who string
	// Does is the verb of a request, with its subresource, or the durable step of an agent.
	Does string
	// What it is done to: a kind and a name, or a node and a file.
	What string
	// Nth time, from 1.
	Nth int
}

// String is the point in one word, which ParsePoint reads.
func (m Point) String() string { return fmt.Sprintf("%s:%s:%s:%d", m.Who, m.Does, m.What, m.Nth) }

// ParsePoint reads what String wrote.
func ParsePoint(text string) (Point, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 4 {
		return Point{}, fmt.Errorf("point %q: want <who>:<does>:<what>:<nth>", text)
	}
	nth, err := strconv.Atoi(parts[3])
	if err != nil || nth < 1 {
		return Point{}, fmt.Errorf("point %q: %q is not a number of 1 or more", text, parts[3])
	}
	return Point{parts[0], parts[1], parts[2], nth}, nil
}

// writes says that the moment is that of a request that changes something.
func (m Point) writes() bool {
	verb, _, _ := strings.Cut(m.Does, "/")
	return apiserver.Verb(verb).Writes() && m.Who != WhoDisk
}

// The programs of points.
const (
	whoOperator = "operator"
	whoAgent    = "agent"
	WhoDisk     = "disk" // a durable step of an agent
)

// pointOfRequest is nil for requests of nobody's program.
func pointOfRequest(r *apiserver.Request) *Point {
	m := Point{Who: whoAgent, Does: string(r.Verb), What: r.Kind + "/" + r.Name}
	switch {
	case strings.HasPrefix(r.User, world.UserOperator):
		m.Who = whoOperator
	case r.User == world.UserPerson || r.User == world.UserKubernetes:
		return nil
	}
	if r.Subresource != "" {
		m.Does += "/" + r.Subresource
	}
	return &m
}

// pointOfStep is a durable step of an agent: the same files are written again and again, so that
// node and step make it one.
func pointOfStep(node string, s memdisk.Step) Point {
	return Point{Who: WhoDisk, Does: string(s.Op), What: node + "/" + strings.ReplaceAll(s.Name, ":", "_")}
}

// counter numbers points.
type counter map[Point]int

func (c counter) next(m Point) Point {
	m.Nth = 0
	c[m]++
	m.Nth = c[m]
	return m
}
