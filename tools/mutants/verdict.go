package main

import (
	"fmt"
	"io"
	"path"
	"time"
)

// verdict is what came of the mutants of a package.
type verdict struct {
	pkg                     string
	killed, hangs, unviable int
	// listed survived and may; unlisted survived and may not.
	listed, unlisted []mutant
	// stale are in the list and were killed, gone are in the list and not in the code.
	stale, gone []survivor
}

func judge(pkg string, mutants []mutant, allowed []survivor) verdict {
	v := verdict{pkg: pkg}
	may := map[key]bool{}
	for _, s := range allowed {
		may[s.key] = true
	}
	survived, made := map[key]bool{}, map[key]bool{}
	for _, m := range mutants {
		made[m.key] = true
		switch {
		case m.status == statusKilled:
			v.killed++
		case m.status == statusHangs:
			v.hangs++
		case m.status == statusNotViable:
			v.unviable++
		case may[m.key]:
			v.listed = append(v.listed, m)
			survived[m.key] = true
		default:
			v.unlisted = append(v.unlisted, m)
		}
	}
	for _, s := range allowed {
		switch {
		case path.Dir(s.File) != pkg:
		case !made[s.key]:
			v.gone = append(v.gone, s)
		case !survived[s.key]:
			v.stale = append(v.stale, s)
		}
	}
	return v
}

// score is the share of mutants in percent that made the tests fail or hang.
func (v verdict) score() float64 {
	noticed := v.killed + v.hangs
	all := noticed + len(v.listed) + len(v.unlisted)
	if all == 0 {
		return 0
	}
	return 100 * float64(noticed) / float64(all)
}

// sound says that the tests are good enough and the list is true.
func (v verdict) sound() bool {
	return v.score() >= minScore && len(v.unlisted) == 0 && len(v.gone) == 0
}

func (v verdict) print(w io.Writer, took time.Duration) {
	for _, m := range v.unlisted {
		fmt.Fprintf(w, "%s:%d: %s; it is not in the list:\n", m.File, m.line, m.fate())
		m.print(w)
	}
	for _, s := range v.gone {
		fmt.Fprintf(w, "%s: in the list, but there is no such code any more; take it out:\n", s.File)
		s.print(w)
	}
	for _, s := range v.stale {
		fmt.Fprintf(w, "%s: in the list, but a test kills it now; it can be taken out:\n", s.File)
		s.print(w)
	}
	fmt.Fprintf(w, "%s: %.1f %% of %d mutants killed (%d hang), %d listed survivors, %d unlisted; %d did not "+
		"compile; %s\n",
		v.pkg, v.score(), v.killed+v.hangs+len(v.listed)+len(v.unlisted), v.hangs, len(v.listed), len(v.unlisted),
		v.unviable, took.Round(time.Second))
	if v.score() < minScore {
		fmt.Fprintf(w, "%s: at least %d %% must be killed\n", v.pkg, minScore)
	}
}

func (k key) print(w io.Writer) {
	fmt.Fprintf(w, "    func:   %s\n    code:   %s\n    mutant: %s\n", k.Func, k.Code, k.Mutant)
}

func (m mutant) fate() string {
	switch m.status {
	case statusNotCovered:
		return "survived, and no test seems to come here"
	case statusTimedOut:
		return "timed out beside others, which says nothing"
	default:
		return "survived"
	}
}
