package cassandra

import "time"

// Options are the speeds of a world. The zero value is what was measured on a small host.
type Options struct {
	// JolokiaMin and JolokiaMax bound the time from the start of a JVM to the first answer of
	// Jolokia, BeansMin and BeansMax that until Cassandra's beans are there, both counted from the
	// start.
	JolokiaMin, JolokiaMax time.Duration
	BeansMin, BeansMax     time.Duration
	// GossipLagMin and GossipLagMax bound how long news takes to one node.
	GossipLagMin, GossipLagMax time.Duration
	// ConvictMin and ConvictMax bound how long a silent node counts as alive (measured: 16 to 19
	// s).
	ConvictMin, ConvictMax time.Duration
	// DrainMin and DrainMax bound a drain, and DeathMax how long a JVM takes to end after it gave
	// up.
	DrainMin, DrainMax, DeathMax time.Duration
	// StreamTime is the least time of a stream, StreamPerKey what each row adds.
	StreamTime, StreamPerKey time.Duration
	// ClientTimeout is how long the agent's client waits for anything but an operation.
	ClientTimeout time.Duration
}

func (o Options) withDefaults() Options {
	standard := Options{
		JolokiaMin: 700 * time.Millisecond, JolokiaMax: time.Second, BeansMin: 4 * time.Second,
		BeansMax:     6 * time.Second,
		GossipLagMin: 100 * time.Millisecond, GossipLagMax: 1500 * time.Millisecond, ConvictMin: 16 * time.Second,
		ConvictMax: 20 * time.Second,
		DrainMin:   3 * time.Second, DrainMax: 5 * time.Second, DeathMax: 4 * time.Second,
		StreamTime: 2 * time.Second, StreamPerKey: time.Millisecond, ClientTimeout: 10 * time.Second,
	}
	for _, d := range []struct{ given, standard *time.Duration }{
		{&o.JolokiaMin, &standard.JolokiaMin}, {&o.JolokiaMax, &standard.JolokiaMax}, {&o.BeansMin, &standard.BeansMin},
		{&o.BeansMax, &standard.BeansMax},
		{&o.GossipLagMin, &standard.GossipLagMin}, {&o.GossipLagMax, &standard.GossipLagMax},
		{&o.ConvictMin, &standard.ConvictMin},
		{&o.ConvictMax, &standard.ConvictMax}, {&o.DrainMin, &standard.DrainMin}, {&o.DrainMax, &standard.DrainMax},
		{&o.DeathMax, &standard.DeathMax},
		{&o.StreamTime, &standard.StreamTime}, {&o.StreamPerKey, &standard.StreamPerKey},
		{&o.ClientTimeout, &standard.ClientTimeout},
	} {
		if *d.given == 0 {
			*d.given = *d.standard
		}
	}
	return o
}
