package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// mostWaves bounds the waves that are worked out ahead: each asks the ring again.
const mostWaves = 20

// Ahead is what brings the members to what the spec describes, and in which waves; nil if there is
// nothing to do. Of a spec that is refused there are no waves.
func Ahead(rules guard.Rules, v *assess.View, refused bool) *plan.RollOut {
	if v.Ledger == nil || !v.Begun() {
		return nil
	}
	p := newPass(v)
	out := &plan.RollOut{}
	if pending, begun := p.pending(); !refused {
		stage := v.Encryption().OrNotEncrypted()
		if next := v.NextEncryption(); next != nil && len(pending)+len(begun) == 0 {
			stage = *next
			v = atNextStage(v, stage)
			p = newPass(v)
		}
		out.Passes = passesAfter(v, stage)
	}
	p.rules = rules
	if s := v.Ledger.Step; s != nil && s.Kind == ledger.RollOut {
		if state, err := ledger.StateOf[State](s); err == nil && state.Target == v.Described() {
			p.state.Proven = state.Proven
		}
	}
	pending, _ := p.pending()
	growing := p.growing()
	for _, w := range v.Wanted {
		if v.Ledger.Members[w.Name] == "" {
			out.NewNodes = append(out.NewNodes, w.Name)
		}
	}
	if len(pending)+len(growing)+len(out.NewNodes) == 0 {
		return nil
	}
	p.explain(out, append(growing, pending...))
	if !refused {
		disruptive, atOnce, held := p.wavesAhead(pending)
		out.Waves, out.Held, out.Estimate.Duration = disruptive, held, p.estimate(len(disruptive))
		if len(atOnce) > 0 {
			out.Waves = append(out.Waves, atOnce)
		}
	}
	return out
}

// explain says which fields change on which nodes, and what that takes.
func (p *pass) explain(out *plan.RollOut, pending []string) {
	found := map[[4]string]*plan.FieldChange{}
	racks := map[[2]string]bool{}
	for _, name := range pending {
		n, w := p.Live(name), p.wanted(p.Live(name))
		differences := render.Differences(n.Record, w)
		for _, d := range differences {
			takes := takes(n.Record, w, d)
			switch {
			case takes == plan.Refused && p.VolumesGrow(n, w):
				takes = plan.Live
			case takes == plan.NewPod && p.renews(n):
				takes = plan.Replacement
			case takes == plan.NewPod && p.changeOf(n) == resize:
				takes = plan.Resize
				if d.Field == "node.resources.limits.memory" && restartFollows(n, w) {
					takes = plan.ResizeAndRestart
				}
			}
			key := [4]string{d.Field, d.Have, d.Want, string(takes)}
			if found[key] == nil {
				found[key] = &plan.FieldChange{Field: d.Field, Have: d.Have, Want: d.Want, Takes: takes}
			}
			found[key].Nodes = append(found[key].Nodes, name)
		}
		if rack := p.rackOf(name); len(differences) > 0 && !racks[rack] {
			racks[rack] = true
			out.Racks = append(out.Racks, plan.RackChange{Datacenter: rack[0], Rack: rack[1], Node: name,
				Have: plan.NodeInput{Configuration: n.Record.Spec.Configuration, Pod: n.Record.Spec.Pod},
				Want: plan.NodeInput{Configuration: w.Configuration, Pod: w.Pod}})
		}
	}
	for _, c := range found {
		out.Changes = append(out.Changes, *c)
	}
	slices.SortFunc(out.Changes, func(a, b plan.FieldChange) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), slices.Compare(a.Nodes, b.Nodes))
	})
}

// takes says what one field needs in which a record differs from what the spec describes.
func takes(have *v1alpha1.CassandraNode, w render.Wanted, d render.Difference) plan.Takes {
	setting, isSetting := strings.CutPrefix(d.Field, "node.cassandraYaml.")
	switch {
	case len(render.Fixed([]render.Difference{d})) > 0, d.Field == "version" &&
		settings.CheckChange(have.Spec.Configuration.Version, w.Configuration.Version) != nil:
		return plan.Refused
	case strings.HasPrefix(d.Field, "node.metadata."):
		return plan.Live
	case isSetting:
		setting, _, _ = strings.Cut(setting, ".")
		one := have.Spec.Configuration
		one.CassandraYaml = maps.Clone(one.CassandraYaml)
		if one.CassandraYaml == nil {
			one.CassandraYaml = v1alpha1.Settings{}
		}
		if value, set := w.Configuration.CassandraYaml[setting]; set {
			one.CassandraYaml[setting] = value
		} else {
			delete(one.CassandraYaml, setting)
		}
		switch changes, err := config.Diff(&have.Spec.Configuration, &one); {
		case err != nil || len(changes.Restart) > 0:
			return plan.Restart
		case len(changes.Hot) > 0:
			return plan.Hot
		}
		return plan.Live // another way to write the same value
	case strings.HasPrefix(d.Field, "security.encryption."), strings.HasPrefix(d.Field, "node.jvm"),
		d.Field == "node.environment", d.Field == "restartedAt", d.Field == render.RulesOfConfiguration,
		d.Field == "security.authentication.mode":
		return plan.Restart
	default:
		return plan.NewPod
	}
}

// wavesAhead are the waves in which the nodes follow if nothing but them goes down meanwhile, and
// why there are no more. What needs no restart comes last, on all nodes at once.
func (p *pass) wavesAhead(pending []string) (waves [][]string, atOnce []string, held string) {
	var down, left []string
	for _, name := range pending {
		switch {
		case p.changeOf(p.Nodes[name]) == live:
			atOnce = append(atOnce, name)
		case p.Of(name).Failing(): // costs nothing, and goes before the others
			down = append(down, name)
		default:
			left = append(left, name)
		}
	}
	left = append(down, left...)
	if r := p.withoutRoom(); len(r) > 0 {
		return nil, atOnce, r[0].Message
	}
	for len(left) > 0 {
		if len(waves) == mostWaves {
			return waves, nil, words.Plural(len(left), "more node") + " would follow"
		}
		among := left
		if p.Of(left[0]).Failing() || !p.state.Proven && len(waves) == 0 {
			among = left[:1]
		}
		wave, refused := slices.Clone(among), ""
		if !p.Of(left[0]).Failing() {
			wave, refused = p.permitted(among, nil)
		}
		if len(wave) == 0 {
			return waves, nil, refused
		}
		wave, _ = p.alone(wave)
		waves = append(waves, wave)
		left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(wave, name) })
	}
	return waves, atOnce, ""
}

// estimate is how long waves that take nodes down will take; 0 if nothing is known of it.
func (p *pass) estimate(waves int) time.Duration {
	took := p.Ledger.WaveTook.Duration
	if waves == 0 || took == 0 {
		return 0
	}
	out := time.Duration(waves) * took
	if !p.state.Proven {
		out += p.soakLength()
	}
	return out
}
