package scene

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/dev/demo/cqlclient"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
)

// Client is an application beside a ring: all the while something happens to the ring it writes
// rows and reads them back at LOCAL_QUORUM, and beside that sets registers by lightweight
// transactions. The rows are an open loop: requests leave at a fixed rate, whatever becomes of
// those before, so that a ring which stands still for a second owes a second of answers. The driver
// is set up as an application's: token aware, with all nodes of a datacenter and no other, 2 s for
// a request, and at most one retry at another node.
type Client struct {
	*connection
	registers *registers
	// run makes the rows of one client others than those of every other.
	run  string
	stop context.CancelFunc
	all  sync.WaitGroup

	mutex    sync.Mutex
	requests []request
	rows     []row
	unread   []string
}

// connection of an application with a ring.
type connection struct {
	ring *Ring
	// session that it has now, and renewing is held by who makes another.
	session  atomic.Pointer[gocql.Session]
	renewing sync.Mutex
}

// row that was acknowledged.
type row struct {
	partition int
	sequence  int64
}

const (
	// clientRate is how many requests leave in a second, half of them writes: enough to see a gap
	// of a few hundredths of a second, too little to load a ring.
	clientRate = 50
	// clientPartitions are what the rows are spread over: enough to touch every replica of small
	// rings.
	clientPartitions = 32
	// clientTimeout bounds each try.
	clientTimeout = 2 * time.Second
)

// Begin begins to write and read, and returns when every partition was served once.
func (r *Ring) Begin(ctx context.Context) (_ *Client, err error) {
	running, stop := context.WithCancel(ctx)
	c := &Client{stop: stop, run: time.Now().UTC().Format(time.RFC3339Nano)}
	c.registers = newRegisters(c.run)
	connections := make([]*connection, 1+registerClients)
	defer func() {
		if err != nil {
			stop()
			leaveAll(connections)
		}
	}()
	for i := range connections {
		if connections[i], err = r.attach(ctx); err != nil {
			return nil, err
		}
	}
	c.connection, c.registers.connections = connections[0], connections[1:]
	for partition := range clientPartitions {
		if err := r.poll(ctx, reaction, "a client writes",
			func(ctx context.Context) error { return c.write(ctx, row{partition, -1}) }); err != nil {
			return nil, err
		}
		c.rows = append(c.rows, row{partition, -1})
	}
	c.all.Go(func() { c.loop(running) })
	for client := range c.registers.connections {
		c.all.Go(func() { c.registers.loop(running, client) })
	}
	return c, nil
}

// attach connects to the ring as soon as that can be done.
func (r *Ring) attach(ctx context.Context) (*connection, error) {
	c := &connection{ring: r}
	err := r.poll(ctx, reaction, "a client connects to the ring", func(ctx context.Context) error {
		session, err := r.connect(ctx)
		if err == nil {
			c.session.Store(session)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// connect makes a session with the nodes that are ready, past the API server and the kubelets.
func (r *Ring) connect(ctx context.Context) (*gocql.Session, error) {
	return r.connectBy(ctx, podDialer{r})
}

// Near makes a session with the nodes that are ready, as an application does in a pod beside the
// first of them.
func (r *Ring) Near(ctx context.Context) (*gocql.Session, error) {
	dialer, err := r.Beside(ctx, r.NodeNames(ctx)[0])
	if err != nil {
		return nil, err
	}
	return r.connectBy(ctx, dialer)
}

// Beside connects from the network of the pod of a node.
func (r *Ring) Beside(ctx context.Context, node string) (gocql.Dialer, error) {
	pid, err := r.Inside(ctx, node)
	return insideDialer(pid), err
}

// Inside is a process that is in the network of a node.
func (r *Ring) Inside(ctx context.Context, node string) (int, error) {
	pod, found := r.Now(ctx).Pod(node)
	if !found {
		return 0, fmt.Errorf("connect beside %s: it has no pod", node)
	}
	pid, err := r.ProcessOf(pod.UID, initProcess)
	if err != nil {
		return 0, fmt.Errorf("connect beside %s: %w", node, err)
	}
	return pid, nil
}

// insideDialer connects from the network of a process.
type insideDialer int

func (pid insideDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return dialInside(ctx, int(pid), network, address)
}

func (r *Ring) connectBy(ctx context.Context, dialer gocql.Dialer) (*gocql.Session, error) {
	access, err := r.Access(ctx)
	if err != nil {
		return nil, err
	}
	config := access.driver()
	config.AuthProvider = func(*gocql.HostInfo) (login gocql.Authenticator, _ error) {
		if known := r.login.Load(); known != nil {
			login = *known
		}
		return login, nil
	}
	config.Dialer = dialer
	return config.CreateSession()
}

// Access is what an application must know to use a ring.
type Access struct {
	Hosts      []string
	Datacenter string
	// Login is nil if the ring asks for none.
	Login *gocql.PasswordAuthenticator
}

// Access to the nodes that are ready, as the superuser.
func (r *Ring) Access(ctx context.Context) (Access, error) {
	a, node := Access{Datacenter: render.DatacenterName(&r.Spec.Datacenters[0])}, ""
	for _, n := range r.Nodes(ctx) {
		if n.Status.Ready {
			a.Hosts, node = append(a.Hosts, n.Status.Address), n.Name
		}
	}
	if node == "" {
		return a, errors.New("no node is ready")
	}
	err := r.LogIn(ctx, node)
	a.Login = r.login.Load()
	return a, err
}

// Session from the network of this process, which is one that reaches the nodes.
func (a Access) Session() (*gocql.Session, error) {
	config := a.driver()
	if a.Login != nil {
		config.Authenticator = *a.Login
	}
	return config.CreateSession()
}

// driver is set up as an application's.
func (a Access) driver() *gocql.ClusterConfig {
	config := gocql.NewCluster(a.Hosts...)
	config.Port = layout.NativePort
	config.ProtoVersion = 4
	config.Timeout, config.WriteTimeout, config.ConnectTimeout = clientTimeout, clientTimeout, clientTimeout
	config.Consistency, config.DefaultIdempotence = gocql.LocalQuorum, true
	config.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 1}
	// what is local to a coordinator of another datacenter is something else
	config.HostFilter = gocql.DataCenterHostFilter(a.Datacenter)
	config.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.DCAwareRoundRobinPolicy(a.Datacenter))
	config.ReconnectInterval = time.Second
	config.Logger = quiet{}
	return config
}

// LogIn has the clients of a ring log in as its superuser, if the ring of a node has one, with
// every connection that they make from now on: as an application that is given its password.
func (r *Ring) LogIn(ctx context.Context, node string) error {
	login, err := cqlclient.Superuser(ctx, r.Kubernetes, r.Namespace, node)
	if err == nil {
		r.login.Store(login)
	}
	return err
}

// on makes a request with the session that the client has now. A driver whose hosts have all
// changed their addresses at once finds them by the name that it was given, which it looks up
// again. This machine does not know the names of the ring's cluster: the client looks the addresses
// up itself and connects again.
func (c *connection) on(ctx context.Context, request func(*gocql.Session) error) error {
	session := c.session.Load()
	err := request(session)
	if errors.Is(err, gocql.ErrNoConnections) && c.renewing.TryLock() {
		defer c.renewing.Unlock()
		if c.session.Load() == session {
			if fresh, err := c.ring.connect(ctx); err == nil {
				c.session.Store(fresh)
				leave(session)
			}
		}
	}
	return err
}

// loop sends a request with every tick. One that is late because this machine was busy leaves all
// the same.
func (c *Client) loop(ctx context.Context) {
	tick := time.NewTicker(time.Second / clientRate)
	defer tick.Stop()
	began, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due := int(time.Since(began) * clientRate / time.Second); sent < due; sent++ {
			n := sent
			c.all.Go(func() { c.request(n) })
		}
	}
}

// request makes the n-th request: a write, or a read of a row that was acknowledged before.
func (c *Client) request(n int) {
	ctx, done := context.WithTimeout(context.Background(), 2*clientTimeout+time.Second)
	defer done()
	r := request{partition: n / 2 % clientPartitions, at: time.Now()}
	if n%2 == 0 {
		next := row{r.partition, int64(n)}
		if r.err = c.write(ctx, next); r.err == nil {
			c.mutex.Lock()
			c.rows = append(c.rows, next)
			c.mutex.Unlock()
		}
	} else {
		c.mutex.Lock()
		known := c.rows[n%len(c.rows)]
		c.mutex.Unlock()
		r.partition = known.partition
		if r.err = c.read(ctx, known); errors.Is(r.err, gocql.ErrNotFound) {
			c.mutex.Lock()
			c.unread = append(c.unread, fmt.Sprintf("%v at %s", known, r.at.Format(time.RFC3339Nano)))
			c.mutex.Unlock()
		}
	}
	r.took = time.Since(r.at)
	c.mutex.Lock()
	c.requests = append(c.requests, r)
	c.mutex.Unlock()
}

func (c *Client) write(ctx context.Context, r row) error {
	return c.on(ctx, func(session *gocql.Session) error {
		return session.Query("INSERT INTO "+Keyspace+".client (run, partition, sequence) VALUES (?, ?, ?)", c.run,
			r.partition, r.sequence).ExecContext(ctx)
	})
}

func (c *Client) read(ctx context.Context, r row) error {
	return c.on(ctx, func(session *gocql.Session) error {
		var sequence int64
		return session.Query("SELECT sequence FROM "+Keyspace+
			".client WHERE run = ? AND partition = ? AND sequence = ?", c.run, r.partition, r.sequence).ScanContext(ctx,
			&sequence)
	})
}

// readAll adds the rows of a partition to those that are there.
func (c *Client) readAll(ctx context.Context, level gocql.Consistency, partition int, there map[row]bool) error {
	return c.on(ctx, func(session *gocql.Session) error {
		iter := session.Query("SELECT sequence FROM "+Keyspace+".client WHERE run = ? AND partition = ?", c.run,
			partition).Consistency(level).IterContext(ctx)
		for sequence := int64(0); iter.Scan(&sequence); {
			there[row{partition, sequence}] = true
		}
		return iter.Close()
	})
}

// End ends the client, and reads at a level, ALL unless a node is lost for good, that every row is
// there that was acknowledged. It says how it was served. The error says what was lost, or that the
// registers were not as one.
func (c *Client) End(ctx context.Context, level gocql.Consistency) (Service, error) {
	c.stop()
	c.all.Wait()
	defer leaveAll(append(c.registers.connections, c.connection))
	service := serviceOf(c.requests)
	service.Written = len(c.rows)
	var wrong error
	service.Registers, wrong = c.registers.end(ctx)
	return service, errors.Join(c.lost(ctx, level), wrong)
}

// lost says which rows were not read that were acknowledged.
func (c *Client) lost(ctx context.Context, level gocql.Consistency) error {
	if len(c.unread) > 0 {
		return fmt.Errorf("%d rows that were acknowledged at LOCAL_QUORUM were not read at LOCAL_QUORUM, "+
			"the first is %s", len(c.unread), c.unread[0])
	}
	there := map[row]bool{}
	err := c.ring.poll(ctx, comeback, "the client's rows can be read at "+level.String(),
		func(ctx context.Context) error {
			clear(there)
			for partition := range clientPartitions {
				if err := c.readAll(ctx, level, partition, there); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return err
	}
	if lost := slices.DeleteFunc(slices.Clone(c.rows), func(r row) bool { return there[r] }); len(lost) > 0 {
		return fmt.Errorf("%d of %d acknowledged rows are lost, the first is %v", len(lost), len(c.rows), lost[0])
	}
	return nil
}

// leaveAll ends the sessions of those connections that were made.
func leaveAll(connections []*connection) {
	for _, c := range connections {
		if c != nil {
			leave(c.session.Load())
		}
	}
}

// leave ends a session, and does not wait for it: the driver (2.1.2) waits for ever for the
// heartbeat of a control connection that has ended.
func leave(session *gocql.Session) { go session.Close() }

// podDialer reaches pods by their addresses: the local cluster's from this machine, others through
// their API server.
type podDialer struct{ ring *Ring }

func (d podDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := d.ring.Local(); !errors.Is(err, ErrNotHere) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	for _, n := range d.ring.Nodes(ctx) {
		if n.Status.Address != host {
			continue
		}
		forward, err := d.ring.Kubernetes.Forward(ctx, d.ring.Namespace, n.Name, uint16(number))
		if err != nil {
			return nil, err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, forward.Address.String())
		if err != nil {
			forward.Close()
			return nil, err
		}
		return forwarded{conn, forward.Close}, nil
	}
	return nil, fmt.Errorf("dial %s: no node has this address", address)
}

// forwarded is a connection that takes its way with it when it is closed.
type forwarded struct {
	net.Conn
	release func()
}

func (f forwarded) Close() error {
	defer f.release()
	return f.Conn.Close()
}

// quiet has the driver say nothing: what becomes of its requests is counted.
type quiet struct{}

func (quiet) Error(string, ...gocql.LogField)   {}
func (quiet) Warning(string, ...gocql.LogField) {}
func (quiet) Info(string, ...gocql.LogField)    {}
func (quiet) Debug(string, ...gocql.LogField)   {}
