package pod

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/cassandra/cql"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/jolokia"
)

// JVM is Cassandra in the same pod, over Jolokia and CQL. Operations ask much of it by the typed
// calls of cassandra.Node as they are.
type JVM struct {
	*cassandra.Node

	// OperatorLogin is whom the agent logs in as at a node that asks for a password.
	OperatorLogin cql.Login
	// TLS is how CQL is encrypted; nil, or what returns nil, for a node that takes plain
	// connections.
	TLS func() (*tls.Config, error)

	jmx    *jolokia.Client
	native netip.AddrPort

	mu     sync.Mutex
	schema cassandra.Schema
	// pending is the number of ranges on their way when they were last asked for.
	pending int
}

// NewJVM asks the Jolokia on a port of the loopback address; transport is nil for a real one.
// Native is where CQL is reached from within the pod.
func NewJVM(port uint16, password string, native netip.AddrPort, transport http.RoundTripper) (*JVM, error) {
	client, err := jolokia.New(jolokia.Config{
		URL: fmt.Sprintf("http://127.0.0.1:%d/jolokia/", port), User: jolokiaUser, Password: password,
		Transport: transport,
	})
	if err != nil {
		return nil, err
	}
	return &JVM{jmx: client, Node: cassandra.NewNode(client), native: native}, nil
}

// connect opens a session of CQL.
func (j *JVM) connect(ctx context.Context, login cql.Login) (*cql.Session, error) {
	return j.connectFor(ctx, login, cql.StatementTimeout)
}

// connectFor is connect for statements that take so long at most.
func (j *JVM) connectFor(ctx context.Context, login cql.Login, longest time.Duration) (*cql.Session, error) {
	var config *tls.Config
	if j.TLS != nil {
		var err error
		if config, err = j.TLS(); err != nil {
			return nil, fmt.Errorf("connect to CQL: %w", err)
		}
	}
	return cql.ConnectTLS(ctx, j.native, login, config, longest)
}

// PlainClients are those of other pods that are connected without encryption.
func (j *JVM) PlainClients(ctx context.Context) ([]string, error) {
	return j.Node.PlainClients(ctx, func(a netip.Addr) bool { return a.IsLoopback() || a == j.native.Addr() })
}

// Look reads how the ring looks from here. A JVM whose beans are not registered yet gives nil.
func (j *JVM) Look(ctx context.Context) (*facts.Ring, error) {
	ring, moving, err := j.Ring(ctx)
	if errors.Is(err, cassandra.ErrStarting) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	schema, err := j.schemaOf(ctx, ring.SchemaVersion)
	if err != nil {
		if ring.Mode == facts.ModeNormal {
			return nil, err
		}
		return ring, nil // on its way up or down a node may not tell; nothing depends on it then
	}
	ring.Keyspaces = map[string]string{}
	var names []string
	for _, k := range schema.Keyspaces {
		ring.Keyspaces[k.Name] = k.Replication.String()
		names = append(names, k.Name)
	}
	ring.Pending, err = j.pendingRanges(ctx, moving, names)
	return ring, err
}

// pendingRanges counts the ranges on their way, of all keyspaces. They are asked for while anybody
// joins, leaves or moves in the node's view, and after that until there are none: Cassandra counts
// them a moment later.
func (j *JVM) pendingRanges(ctx context.Context, moving bool, keyspaces []string) (int, error) {
	j.mu.Lock()
	ask := moving || j.pending > 0
	j.mu.Unlock()
	if !ask {
		return 0, nil
	}
	count, err := j.PendingRanges(ctx, keyspaces)
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	j.pending = count
	j.mu.Unlock()
	return count, nil
}

// schemaOf reads the keyspaces again only when the version of the schema is another one.
func (j *JVM) schemaOf(ctx context.Context, version string) (cassandra.Schema, error) {
	j.mu.Lock()
	schema := j.schema
	j.mu.Unlock()
	if version != "" && schema.Version == version {
		return schema, nil
	}
	schema, err := j.Schema(ctx)
	if err != nil {
		return cassandra.Schema{}, err
	}
	j.mu.Lock()
	j.schema = schema
	j.mu.Unlock()
	return schema, nil
}

// settingUp is how Cassandra refuses to open CQL between NORMAL and the end of its start, while
// gossip settles (CassandraDaemon.startNativeTransport).
const settingUp = "setup() must be called first"

// OpenNative opens CQL.
func (j *JVM) OpenNative(ctx context.Context) error {
	err := j.StartNativeTransport(ctx)
	var refusal *jolokia.Error
	if errors.As(err, &refusal) && strings.Contains(refusal.Message, settingUp) {
		return fmt.Errorf("%w: gossip settles before CQL opens", execute.ErrNotYet)
	}
	return err
}

// CloseNative closes CQL.
func (j *JVM) CloseNative(ctx context.Context) error { return j.StopNativeTransport(ctx) }

// Apply makes changes through JMX, in order. The first refusal ends it; to make them again is
// harmless.
func (j *JVM) Apply(ctx context.Context, writes []config.Write) error {
	for _, w := range writes {
		request := jolokia.Write(w.MBean, w.Attribute, w.Value)
		if w.Operation != "" {
			request = jolokia.Exec(w.MBean, w.Operation, w.Arguments...)
		}
		if _, err := j.jmx.Call(ctx, request); err != nil {
			return fmt.Errorf("set %s: %w", strings.Join(w.Settings, ", "), err)
		}
	}
	return nil
}

// Tables reads them from the schema.
func (j *JVM) Tables(ctx context.Context) ([]facts.Table, time.Duration, error) {
	session, err := j.connect(ctx, j.OperatorLogin)
	if err != nil {
		return nil, 0, err
	}
	defer session.Close()
	return session.Tables(ctx)
}

// Describe reads the statements that create the types, tables and views of a keyspace.
func (j *JVM) Describe(ctx context.Context, keyspace string) (string, error) {
	session, err := j.connect(ctx, j.OperatorLogin)
	if err != nil {
		return "", err
	}
	defer session.Close()
	return session.Describe(ctx, keyspace)
}

// ForgetStreamedRanges has the next rebuild of a keyspace stream all of its ranges.
func (j *JVM) ForgetStreamedRanges(ctx context.Context, keyspace string) error {
	session, err := j.connect(ctx, j.OperatorLogin)
	if err != nil {
		return err
	}
	defer session.Close()
	return session.ForgetStreamedRanges(ctx, keyspace)
}

// AlterSystemKeyspaces gives the system keyspaces at least so many replicas in each datacenter.
func (j *JVM) AlterSystemKeyspaces(ctx context.Context, least map[string]int32) (string, error) {
	return j.AlterKeyspaces(ctx, ofSystemKeyspaces(least))
}

func ofSystemKeyspaces(replicas map[string]int32) map[string]map[string]int32 {
	keyspaces := map[string]map[string]int32{}
	for _, name := range ring.SystemKeyspaces() {
		keyspaces[name] = replicas
	}
	return keyspaces
}

// SetSystemKeyspaces gives the system keyspaces exactly so many replicas in each datacenter.
func (j *JVM) SetSystemKeyspaces(ctx context.Context, exact map[string]int32) (string, error) {
	return j.SetKeyspaces(ctx, ofSystemKeyspaces(exact))
}

// SetKeyspaces gives keyspaces exactly so many replicas in each datacenter.
func (j *JVM) SetKeyspaces(ctx context.Context, exact map[string]map[string]int32) (string, error) {
	session, err := j.connect(ctx, j.OperatorLogin)
	if err != nil {
		return "", err
	}
	defer session.Close()
	altered, err := cql.SetReplication(ctx, session, Counts(exact), j.AwaitSchemaAgreement)
	return AlteredText(altered), err
}

// AlterKeyspaces gives keyspaces at least so many replicas in each datacenter.
func (j *JVM) AlterKeyspaces(ctx context.Context, least map[string]map[string]int32) (string, error) {
	session, err := j.connect(ctx, j.OperatorLogin)
	if err != nil {
		return "", err
	}
	defer session.Close()
	altered, err := cql.RaiseReplication(ctx, session, Counts(least), j.AwaitSchemaAgreement)
	return AlteredText(altered), err
}

// SetRoles gives the system keyspaces at least so many replicas in each datacenter, makes the roles
// of the logins, and locks those whose password others know.
func (j *JVM) SetRoles(ctx context.Context, logins cassandra.Logins, least map[string]int32) (string, error) {
	return cql.SetRoles(ctx, roleNode{j}, logins, func(ctx context.Context, s cql.Schema) (string, error) {
		altered, err := cql.RaiseReplication(ctx, s, Counts(ofSystemKeyspaces(least)), j.AwaitSchemaAgreement)
		return AlteredText(altered), err
	})
}

// ProveLogin is nil if the node lets in whom it is to let in of the logins, and nobody else.
func (j *JVM) ProveLogin(ctx context.Context, logins cassandra.Logins) error {
	return cql.ProveLogin(ctx, roleNode{j}, logins)
}

// ProvePassword is nil if the node lets the superuser in, and refuses his password before.
func (j *JVM) ProvePassword(ctx context.Context, superuser cassandra.Login, old string) error {
	return cql.ProvePassword(ctx, roleNode{j}, superuser, old)
}

// SetPassword gives the superuser of the logins its password, by the one before.
func (j *JVM) SetPassword(ctx context.Context, logins cassandra.Logins) (string, error) {
	return cql.SetPassword(ctx, roleNode{j}, logins)
}

// KeepRoles makes roles of applications, or makes them so, as a superuser.
func (j *JVM) KeepRoles(ctx context.Context, superuser cassandra.Login, roles []cassandra.KeptRole) (string, error) {
	return cql.KeepRoles(ctx, roleNode{j}, superuser, roles)
}

// CheckRows asks queries, where a password is asked for as a superuser.
func (j *JVM) CheckRows(ctx context.Context, superuser cassandra.Login, checks []v1alpha1.RowCheck) (string, error) {
	session, err := j.connectFor(ctx, func(context.Context) (cassandra.Login, error) { return superuser, nil },
		cql.CheckTimeout)
	if err != nil {
		return "", err
	}
	defer session.Close()
	return cql.CheckRows(ctx, session, checks)
}

// roleNode is cql.RoleNode.
type roleNode struct{ *JVM }

// LogIn implements cql.RoleNode.
func (n roleNode) LogIn(ctx context.Context, login cassandra.Login) (cql.RoleSession, error) {
	return n.connect(ctx, func(context.Context) (cassandra.Login, error) { return login, nil })
}

// Counts are numbers of replicas as package cassandra has them.
func Counts(least map[string]map[string]int32) map[string]map[string]int {
	out := make(map[string]map[string]int, len(least))
	for keyspace, replicas := range least {
		out[keyspace] = make(map[string]int, len(replicas))
		for datacenter, n := range replicas {
			out[keyspace][datacenter] = int(n)
		}
	}
	return out
}

// AlteredText says which keyspaces were altered.
func AlteredText(names []string) string {
	if len(names) == 0 {
		return "nothing had to be altered"
	}
	return "altered " + strings.Join(names, ", ")
}

// Close ends idle connections.
func (j *JVM) Close() { j.jmx.Close() }
