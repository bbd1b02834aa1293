// Package timeline is virtual time with one thread of control: events in the order of their time,
// tasks that park in the middle of a call and continue later, and one seeded source of every
// choice. The same seed gives the same run. It imports the standard library alone.
package timeline
