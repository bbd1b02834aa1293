package cassandra

import (
	"encoding/json"
	"time"
)

func (p *Process) upgradeSSTables(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	if _, _, failed := p.keyspaceOf(arguments, 0); failed != nil {
		return nil, failed
	}
	p.sleep(p.net.within(200*time.Millisecond, 2*time.Second))
	return json.RawMessage("0"), nil
}
