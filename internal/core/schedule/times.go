package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"helenus.io/helenus/api/v1alpha1"
)

// fields of a schedule: five, and no descriptor such as @every.
const fields = cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow

const allowed = "allowed are minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or JAN-DEC, day of the week " +
	"0-6 or SUN-SAT, lists, ranges and steps of these, and *"

// times is the time of the schedule that follows on another; nil, with why, if it has none.
func (p *pass) times() (after func(time.Time) time.Time, reason, message string) {
	spec := p.spec
	if p.Zone == nil {
		return nil, v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.timeZone %q is not in the IANA time zone database: "+
			"allowed are its names, such as UTC or Europe/Berlin", spec.TimeZone)
	}
	parsed, err := parse(spec.Schedule)
	if err != nil {
		return nil, v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.schedule %q: %v: %s", spec.Schedule, err, allowed)
	}
	after = func(t time.Time) time.Time { return parsed.Next(t.In(p.Zone)) }
	if after(p.now).IsZero() {
		return nil, v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.schedule %q has no time in the next five years: "+
			"name a day that its months have", spec.Schedule)
	}
	if !p.Cluster {
		return nil, v1alpha1.ReasonClusterMissing, fmt.Sprintf("spec.cluster.name %q: there is no CassandraCluster of "+
			"this name in the namespace, or it is being deleted: create it, or delete this schedule", p.cluster)
	}
	return after, "", ""
}

func parse(expression string) (cron.Schedule, error) {
	if strings.ContainsAny(expression, "=@") { // the parser would take a time zone
		return nil, fmt.Errorf("it has more than the five fields of cron")
	}
	return cron.NewParser(fields).Parse(expression)
}
