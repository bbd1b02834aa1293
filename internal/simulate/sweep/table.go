package sweep

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"helenus.io/helenus/internal/simulate/trial"
)

// Table writes what was tried as Markdown: how many points injected, for each scenario and class.
func (r Report) Table(out io.Writer) {
	classes := trial.Classes()
	fmt.Fprintf(out, "| scenario | %s | all |\n|---|%s---:|\n", joined(classes), strings.Repeat("---:|", len(classes)))
	var names []string
	for row := range r.Injected {
		if !slices.Contains(names, row.Scenario) {
			names = append(names, row.Scenario)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(out, "| %s |", name)
		all := 0
		for _, class := range classes {
			n := r.Injected[Row{name, class}]
			all += n
			fmt.Fprintf(out, " %d |", n)
		}
		fmt.Fprintf(out, " %d |\n", all)
	}
	fmt.Fprint(out, "| all |")
	all := 0
	for _, class := range classes {
		n := r.Of(class)
		all += n
		fmt.Fprintf(out, " %d |", n)
	}
	fmt.Fprintf(out, " %d |\n", all)
}

func joined(classes []trial.Class) string {
	words := make([]string, len(classes))
	for i, c := range classes {
		words[i] = string(c)
	}
	return strings.Join(words, " | ")
}
