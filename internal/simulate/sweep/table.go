package sweep

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"helenus.io/helenus/internal/simulate/trial"
)

// Table writes what was tried as Markdown: how many points struck, for each scenario and class.
func (r Report) Table(out io.Writer) {
	classes := trial.Classes()
	fmt.Fprintf(out, "| scenario | %s | all |\n|---|%s---:|\n", joined(classes), strings.Repeat("---:|", len(classes)))
	var names []string
	for row := range r.Rows {
		if !slices.Contains(names, row.Scenario) {
			names = append(names, row.Scenario)
		}
	}
	slices.Sort(names)
	sums := make([]int, len(classes))
	for _, name := range names {
		fmt.Fprintf(out, "| %s |", name)
		all := 0
		for i, class := range classes {
			n := 0
			if c := r.Rows[Row{name, class}]; c != nil {
				n = c.Struck
			}
			sums[i] += n
			all += n
			fmt.Fprintf(out, " %d |", n)
		}
		fmt.Fprintf(out, " %d |\n", all)
	}
	fmt.Fprint(out, "| all |")
	all := 0
	for _, n := range sums {
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
