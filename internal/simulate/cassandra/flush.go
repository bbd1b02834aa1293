package cassandra

import (
	"encoding/json"
	"time"
)

func (p *Process) flushKeyspace(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	if _, _, failed := p.keyspaceOf(arguments, 0); failed != nil {
		return nil, failed
	}
	p.sleep(p.net.within(20*time.Millisecond, 200*time.Millisecond))
	p.flushOrDie()
	return jsonNull, nil
}
